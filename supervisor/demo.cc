#include "supervisor/demo.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "supervisor/process/directories.h"
#include "supervisor/programs.h"

namespace berth {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig =
    R"(# Settings of this demo, on top of its defaults. Every setting: docs/configuration.md.
# `berth config show` prints what is in force.

# [models]
# dirs = ["models"]          # put *.gguf files there

# [model."demo"]
# context = 8192
# ttl = "30m"
)";

Status write_config(const fs::path& path) {
  std::ofstream file(path);
  file << kConfig;
  file.close();
  if (file) return {};
  return fail(Reason::kInvalidArgument,
              path.string() + " cannot be written: " + std::strerror(errno) + ".");
}

// A copy that is whole or not there.
Status copy_model(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  const fs::path part = to.string() + ".part";
  fs::copy_file(from, part, fs::copy_options::overwrite_existing, failed);
  if (!failed) fs::permissions(part, fs::perms::owner_read | fs::perms::owner_write, failed);
  if (!failed) fs::rename(part, to, failed);
  if (!failed) return {};
  return fail(Reason::kInvalidArgument,
              "The demo model cannot be copied to " + to.string() + ": " + failed.message() + ".");
}

}  // namespace

Status prepare_demo(const std::string& dir) {
  const fs::path root(dir);
  for (const fs::path& folder : {root, root / "models"}) {
    if (Status made = process::ensure_directory(folder.string(), 0700); !made) return made;
  }
  std::error_code ignored;
  if (!fs::exists(root / "berth.toml", ignored)) {
    if (Status written = write_config(root / "berth.toml"); !written) return written;
  }
  const fs::path model = root / "models" / "demo.gguf";
  if (fs::exists(model, ignored)) return {};
  const std::string shipped = shared_file("tinychat.gguf");
  // Without the shipped model the directory still serves what the user puts there.
  if (shipped.empty()) return {};
  return copy_model(shipped, model);
}

}  // namespace berth
