#include "supervisor/demo.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "common/fd.h"
#include "supervisor/process/directories.h"
#include "supervisor/programs.h"

namespace berth {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kPrivateFile = S_IRUSR | S_IWUSR;

constexpr const char* kConfig =
    R"(# Settings of this demo, on top of its defaults. Every setting: docs/configuration.md.
# `berth config show` prints what is in force.

# [models]
# dirs = ["models"]          # put *.gguf files there

# [model."demo"]
# context = 8192
# ttl = "30m"
)";

Status cannot(const std::string& what, int error) {
  return fail(Reason::kInvalidArgument, what + ": " + std::generic_category().message(error) + ".");
}

// 0, or errno.
int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(file, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return 0;
}

int copy_all(int from, int to) {
  std::array<char, 64 * 1024> buffer{};
  while (true) {
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got == 0) return 0;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    const int error = write_all(to, {buffer.data(), static_cast<std::size_t>(got)});
    if (error != 0) return error;
  }
}

// What is there stays, a link included.
Status write_config(const std::string& path) {
  const UniqueFd file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kPrivateFile));
  if (!file && errno == EEXIST) return {};
  const int error = file ? write_all(file.get(), kConfig) : errno;
  if (error == 0) return {};
  if (file) ::unlink(path.c_str());
  return cannot(path + " cannot be written", error);
}

// A copy that is whole or not there.
Status copy_model(const std::string& from, const fs::path& to) {
  const std::string what = "The demo model cannot be copied to " + to.string();
  const UniqueFd source(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (!source) return cannot(what, errno);
  std::string part = (to.parent_path() / ".demo-XXXXXX").string();
  const UniqueFd copy(::mkostemp(part.data(), O_CLOEXEC));
  if (!copy) return cannot(what, errno);
  int error = copy_all(source.get(), copy.get());
  if (error == 0 && ::rename(part.c_str(), to.c_str()) != 0) error = errno;
  if (error == 0) return {};
  ::unlink(part.c_str());
  return cannot(what, error);
}

}  // namespace

Status prepare_demo(const std::string& dir) {
  const fs::path root(dir);
  for (const fs::path& folder : {root, root / "models"}) {
    if (Status made = process::ensure_private_directory(folder.string(), 0700); !made) return made;
  }
  if (Status written = write_config(root / "berth.toml"); !written) return written;
  std::error_code ignored;
  const fs::path model = root / "models" / "demo.gguf";
  if (fs::exists(model, ignored)) return {};
  const std::string shipped = shared_file("tinychat.gguf");
  // Without the shipped model the directory still serves what the user puts there.
  if (shipped.empty()) return {};
  return copy_model(shipped, model);
}

}  // namespace berth
