#include "worker/engine/backends.h"

#include <dirent.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "llama.h"

namespace berth::worker {
namespace {

constexpr std::string_view kDirectory = BERTH_GGML_BACKEND_DIR;
constexpr std::string_view kPrefix = "libggml-cpu-";
constexpr std::string_view kSuffix = ".so";

enum class Needs { kNothing, kAvx2, kAvx512 };
struct Variant {
  std::string_view name;
  Needs needs;
};
// The variants of x86-64, best first: the order of their scores. Each dlopen costs 0.4 ms, so the
// first that runs is taken instead of asking all of them.
constexpr std::array kRanked = {
    Variant{"sapphirerapids", Needs::kAvx512}, Variant{"zen4", Needs::kAvx512},
    Variant{"cooperlake", Needs::kAvx512},     Variant{"icelake", Needs::kAvx512},
    Variant{"cascadelake", Needs::kAvx512},    Variant{"cannonlake", Needs::kAvx512},
    Variant{"skylakex", Needs::kAvx512},       Variant{"alderlake", Needs::kAvx2},
    Variant{"haswell", Needs::kAvx2},          Variant{"piledriver", Needs::kNothing},
    Variant{"ivybridge", Needs::kNothing},     Variant{"sandybridge", Needs::kNothing},
    Variant{"sse42", Needs::kNothing},         Variant{"x64", Needs::kNothing},
};

// How each backend names its devices, and its plugin (ggml's own names of both).
struct DeviceBackend {
  std::string_view prefix;
  std::string_view library;
};
constexpr std::array kDeviceBackends = {
    DeviceBackend{"Vulkan", "libggml-vulkan.so"}, DeviceBackend{"CUDA", "libggml-cuda.so"},
    DeviceBackend{"ROCm", "libggml-hip.so"},      DeviceBackend{"HIP", "libggml-hip.so"},
    DeviceBackend{"MUSA", "libggml-musa.so"},     DeviceBackend{"SYCL", "libggml-sycl.so"},
    DeviceBackend{"RPC", "libggml-rpc.so"},
};

bool cpu_has([[maybe_unused]] Needs needs) {
#if defined(__x86_64__)
  switch (needs) {
    case Needs::kNothing:
      return true;
    case Needs::kAvx2:
      return __builtin_cpu_supports("avx2") != 0;
    case Needs::kAvx512:
      return __builtin_cpu_supports("avx512f") != 0;
  }
#endif
  return true;
}

struct LibraryCloser {
  void operator()(void* handle) const { ::dlclose(handle); }
};
using Library = std::unique_ptr<void, LibraryCloser>;

// How well a variant fits this processor: 0 = not at all. `library` stays open meanwhile, so that
// ggml's own dlopen of the chosen one is free.
int score(const std::string& path, Library& library) {
  library.reset(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!library) return 0;
  using ScoreFunction = int (*)();
  const auto function =
      reinterpret_cast<ScoreFunction>(::dlsym(library.get(), "ggml_backend_score"));
  return function == nullptr ? 0 : function();
}

std::vector<std::string> cpu_libraries(const std::string& directory) {
  std::vector<std::string> names;
  DIR* const listing = ::opendir(directory.c_str());
  if (listing == nullptr) return names;
  while (const dirent* const entry = ::readdir(listing)) {  // NOLINT(concurrency-mt-unsafe): own
    const std::string_view name(entry->d_name);
    if (name.starts_with(kPrefix) && name.ends_with(kSuffix)) names.emplace_back(name);
  }
  ::closedir(listing);
  std::sort(names.begin(), names.end());
  return names;
}

std::string in_directory(std::string_view name) {
  return std::string(kDirectory).append("/").append(name);
}

bool load(const std::string& path) {
  return ggml_backend_load(path.c_str()) != nullptr;
}

}  // namespace

Status load_cpu_backend() {
  if (kDirectory.empty() || ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU) != nullptr) {
    return {};
  }
  auto names = cpu_libraries(std::string(kDirectory));
  for (const auto& variant : kRanked) {
    const auto name = std::string(kPrefix).append(variant.name).append(kSuffix);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) continue;
    names.erase(found);
    if (!cpu_has(variant.needs)) continue;
    const auto path = in_directory(name);
    Library library;
    if (score(path, library) > 0 && load(path)) return {};
  }
  // Other processors, other names: ask each.
  std::string best;
  int best_score = 0;
  for (const auto& name : names) {
    Library library;
    const auto path = in_directory(name);
    const int found = score(path, library);
    if (found > best_score) {
      best_score = found;
      best = path;
    }
  }
  if (!best.empty() && load(best)) return {};
  if (load(in_directory("libggml-cpu.so"))) return {};
  return fail(Reason::kLoadFailed,
              "No CPU backend of ggml in " + std::string(kDirectory) +
                  " runs on this processor. Run deploy/setup again, or rebuild berth against "
                  "another libllama.");
}

void load_device_backend(std::string_view device) {
  if (kDirectory.empty() || ggml_backend_dev_by_name(std::string(device).c_str()) != nullptr) {
    return;
  }
  for (const auto& backend : kDeviceBackends) {
    if (!device.starts_with(backend.prefix)) continue;
    const auto path = in_directory(backend.library);
    if (::access(path.c_str(), R_OK) == 0) load(path);
    return;
  }
}

void load_all_backends() {
  if (kDirectory.empty()) return;
  ggml_backend_load_all_from_path(std::string(kDirectory).c_str());
}

}  // namespace berth::worker
