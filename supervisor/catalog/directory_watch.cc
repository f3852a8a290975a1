#include "supervisor/catalog/directory_watch.h"

#include <sys/inotify.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "common/errno_text.h"
#include "supervisor/catalog/catalog.h"

namespace berth::catalog {
namespace {

namespace fs = std::filesystem;

// Bound of what one watch holds; the kernel's own bound is shared with the whole user.
constexpr std::size_t kMaxDirectories = 1024;
constexpr std::size_t kMaxReads = 64;

// Not IN_MODIFY: a download would report each of its writes, and ends with IN_CLOSE_WRITE.
constexpr std::uint32_t kEvents = IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM |
                                  IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF;

}  // namespace

Result<DirectoryWatch> DirectoryWatch::make() {
  UniqueFd fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!fd) {
    return fail(Reason::kInternal,
                "Directories cannot be watched for changes: " + errno_text(errno) +
                    ". Raise fs.inotify.max_user_instances; until then changes are seen within "
                    "30 s.");
  }
  return DirectoryWatch(std::move(fd));
}

Result<DirectoryWatch> DirectoryWatch::open_file(const std::string& path) {
  Result<DirectoryWatch> watch = make();
  if (!watch) return watch;
  watch->models_ = false;
  watch->names_.push_back(fs::path(path).filename().string());
  static_cast<void>(watch->add(fs::path(path).parent_path().string()));
  return watch;
}

Result<DirectoryWatch> DirectoryWatch::open(const Config& config) {
  Result<DirectoryWatch> made = make();
  if (!made) return made;
  DirectoryWatch watch = *std::move(made);
  std::set<std::string> dirs;
  for (const std::string& dir : config.model_dirs) {
    if (const auto root = watch.add(dir)) watch.roots_.push_back(*root);
    std::error_code error;
    std::size_t entries = 0;
    for (fs::directory_iterator entry(dir, error), end; !error && entry != end;
         entry.increment(error)) {
      if (++entries > ScanLimits().directory_entries) break;
      std::error_code ignored;
      if (entry->is_directory(ignored)) dirs.insert(entry->path().string());
    }
  }
  for (const ConfiguredModel& model : config.models) {
    if (model.path.empty()) continue;
    const fs::path path(model.path);
    dirs.insert(path.parent_path().string());
    watch.names_.push_back(path.filename().string());
  }
  std::size_t added = 0;
  for (const std::string& dir : dirs) {
    if (++added > kMaxDirectories) break;
    static_cast<void>(watch.add(dir));
  }
  return watch;
}

std::optional<int> DirectoryWatch::add(const std::string& dir) const {
  const int watch = ::inotify_add_watch(fd_.get(), dir.c_str(), kEvents | IN_ONLYDIR);
  // A failure is no error: stat_stamp() finds what this does not.
  return watch < 0 ? std::nullopt : std::optional<int>(watch);
}

bool DirectoryWatch::matters(std::uint32_t mask, int watch, std::string_view name) const {
  // Of a watched directory itself, or the report that reports were lost.
  if (name.empty()) return true;
  if ((mask & IN_ISDIR) != 0) {
    return std::find(roots_.begin(), roots_.end(), watch) != roots_.end();
  }
  return (models_ && name.ends_with(".gguf")) ||
         std::find(names_.begin(), names_.end(), name) != names_.end();
}

bool DirectoryWatch::drain() {
  alignas(inotify_event) std::array<char, 16'384> buffer;
  bool changed = false;
  for (std::size_t reads = 0; reads < kMaxReads; ++reads) {
    const ssize_t got = ::read(fd_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    const char* at = buffer.data();
    const char* const end = at + got;
    while (at < end) {
      inotify_event event{};
      std::memcpy(&event, at, sizeof(event));
      const char* name = at + sizeof(event);
      const std::string_view text(name, ::strnlen(name, event.len));
      changed = matters(event.mask, event.wd, text) || changed;
      at = name + event.len;
    }
  }
  return changed;
}

}  // namespace berth::catalog
