#include "supervisor/cli/doctor/disk.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "common/errno_text.h"
#include "common/units.h"

namespace berth::cli {
namespace {

constexpr std::uint64_t kLittle = std::uint64_t{1} << 30U;
constexpr std::uint64_t kFull = std::uint64_t{64} << 20U;

// The path itself, or the nearest folder above it that is there.
std::string existing(std::string path) {
  while (path.size() > 1 && ::access(path.c_str(), F_OK) != 0 && errno == ENOENT) {
    const std::size_t slash = path.rfind('/');
    path = slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
  }
  return path;
}

std::string mode_text(mode_t mode) {
  std::string text = "0000";
  for (std::size_t i = 4; i-- > 0; mode >>= 3U) text[i] = static_cast<char>('0' + (mode & 7U));
  return text;
}

Check check_space(const std::string& name, const std::string& path) {
  struct statvfs status {};
  const std::string what = "disk of " + name;
  if (::statvfs(path.c_str(), &status) != 0) {
    return warning(what, "cannot look at " + path + ": " + errno_text(errno),
                   "run this as root or as the daemon's user");
  }
  const std::uint64_t free = std::uint64_t{status.f_bavail} * status.f_frsize;
  const std::string found = format_bytes(free) + " free for " + path;
  if (free < kFull) return error(what, found, "free some space: berth cannot keep its state");
  if (free < kLittle) return warning(what, found, "free some space");
  return ok(what, found);
}

Check check_permissions(const std::string& what, const std::string& path, bool there) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return warning(what, "cannot look at " + path + ": " + errno_text(errno),
                   "run this as root or as the daemon's user");
  }
  if (!S_ISDIR(status.st_mode)) return error(what, path + " is no directory", "move it away");
  if (!there) return ok(what, "is not there yet; it will be made in " + path);
  const std::string found = path + ", mode " + mode_text(status.st_mode & 07777U) + ", owner " +
                            std::to_string(status.st_uid);
  if ((status.st_mode & S_IWOTH) != 0) {
    return error(what, found, "everybody may write there: chmod o-w " + path);
  }
  return ok(what, found);
}

}  // namespace

Checks check_directories(const std::vector<std::pair<std::string, std::string>>& directories) {
  Checks checks;
  for (const auto& [name, path] : directories) {
    if (path.empty() || path.front() != '/') continue;
    const std::string there = existing(path);
    checks.push_back(check_permissions(name, there, there == path));
    checks.push_back(check_space(name, there));
  }
  return checks;
}

}  // namespace berth::cli
