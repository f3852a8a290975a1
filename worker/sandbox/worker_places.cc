#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "common/fd.h"
#include "common/gguf/names.h"
#include "worker/sandbox/landlock.h"
#include "worker/sandbox/places.h"

namespace berth::worker {
namespace {

// Where the loaders of Linux distributions look for libraries, and Debian's places of time zones.
constexpr std::array kReadable = {
    "/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache",
    "/etc/localtime", "/usr/share/zoneinfo",
    // How many processors and how much memory there are, and of which kind.
    "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys/vm/overcommit_memory",
    "/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/kernel/mm/transparent_hugepage",
    "/dev/zero", "/dev/random", "/dev/urandom"};

template <typename T>
bool read_at(int file, std::size_t offset, T& value) {
  return ::pread(file, &value, sizeof value, static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(sizeof value);
}

}  // namespace

std::vector<std::string> split_paths(const char* list) {
  std::vector<std::string> paths;
  std::string_view rest(list != nullptr ? list : "");
  while (!rest.empty()) {
    const auto end = std::min(rest.find(':'), rest.size());
    if (end > 0) paths.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return paths;
}

std::vector<std::string> with_shards(const std::string& path) {
  std::vector<std::string> files = {path};
  const auto name = path.rfind('/') + 1;  // 0: there is no folder in it
  const auto shard = gguf::parse_shard_name(std::string_view(path).substr(name));
  if (!shard) return files;
  for (std::uint32_t number = 1; number <= shard->count; ++number) {
    if (number == shard->number) continue;
    auto file = path.substr(0, name) + gguf::shard_name(shard->prefix, number, shard->count);
    if (::access(file.c_str(), F_OK) != 0) break;  // without it the load fails in any case
    files.push_back(std::move(file));
  }
  return files;
}

std::string loader_of(const std::string& program) {
  constexpr std::size_t kMostHeaders = 256;
  constexpr std::size_t kMostBytes = 4096;
  const UniqueFd file(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
  Elf64_Ehdr header{};
  if (!file || !read_at(file.get(), 0, header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phnum > kMostHeaders) {
    return {};
  }
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    if (!read_at(file.get(), header.e_phoff + i * sizeof part, part)) return {};
    if (part.p_type != PT_INTERP || part.p_filesz > kMostBytes) continue;
    std::string loader(part.p_filesz, '\0');
    const auto size =
        ::pread(file.get(), loader.data(), loader.size(), static_cast<off_t>(part.p_offset));
    return size == static_cast<ssize_t>(loader.size()) ? loader.c_str() : "";
  }
  return {};
}

std::vector<Grant> worker_grants(const SandboxPlaces& places) {
  std::vector<Grant> grants;
  grants.reserve(kReadable.size() + 2);
  for (const auto* const path : kReadable) grants.push_back({path, FileAccess::kRead});
  grants.push_back({BERTH_LLAMA_LIB_DIR, FileAccess::kRead});
  grants.push_back({BERTH_GGML_BACKEND_DIR, FileAccess::kRead});
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread yet
  for (auto& path : split_paths(std::getenv("LD_LIBRARY_PATH"))) {
    grants.push_back({std::move(path), FileAccess::kRead});
  }
  grants.push_back({"/dev/null", FileAccess::kReadFile | FileAccess::kWrite});
  for (const auto& model : places.models) {
    for (auto& file : with_shards(model))
      grants.push_back({std::move(file), FileAccess::kReadFile});
  }
  grants.push_back({places.socket_directory, FileAccess::kRemoveFile});
  if (!places.template_program.empty()) {
    constexpr auto kRun = FileAccess::kExecute | FileAccess::kReadFile;
    grants.push_back({places.template_program, kRun});
    grants.push_back({loader_of(places.template_program), kRun});
  }
  for (const auto& folder : places.granted) grants.push_back({folder, FileAccess::kKeepFiles});
  return grants;
}

}  // namespace berth::worker
