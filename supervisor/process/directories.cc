#include "supervisor/process/directories.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>

#include "common/errno_text.h"
#include "common/fd.h"

namespace berth::process {
namespace {

bool is_directory(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool is_link(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
}

// "0750"
std::string mode_text(mode_t mode) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%04o", static_cast<unsigned int>(mode & 07777U));
  return text.data();
}

std::string own_user() {
  return std::to_string(::geteuid());
}

}  // namespace

Status ensure_directory(const std::string& path, mode_t mode) {
  if (path.empty()) return fail(Reason::kInvalidArgument, "A directory's name is empty.");
  for (std::size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), mode) == 0) {
      // mkdir() takes the umask off.
      if (::chmod(part.c_str(), mode) != 0) {
        return fail(Reason::kInvalidArgument,
                    "The mode of " + part + " cannot be set: " + errno_text(errno) + ".");
      }
      continue;
    }
    const int error = errno;
    if (is_directory(part)) continue;
    if (error == EEXIST) {
      return fail(Reason::kInvalidArgument, part + " is needed as a directory, but is a file.");
    }
    return fail(Reason::kInvalidArgument,
                "The directory " + part + " cannot be made: " + errno_text(error) + ".");
  }
  return {};
}

Status ensure_private_directory(const std::string& path, mode_t mode) {
  if (Status made = ensure_directory(path, mode); !made) return made;
  // With a slash at its end a link would be followed.
  std::string name = path;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  const UniqueFd directory(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const int error = errno;
  if (!directory && is_link(name)) {
    return fail(Reason::kInvalidArgument,
                name + " is a link, and where it leads may change. Name the directory itself.");
  }
  struct stat info {};
  if (!directory || ::fstat(directory.get(), &info) != 0) {
    return fail(Reason::kInvalidArgument, "The directory " + name + " cannot be opened: " +
                                              errno_text(directory ? errno : error) + ".");
  }
  const bool trusted_owner = info.st_uid == ::geteuid() || info.st_uid == 0;
  const bool writable = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (trusted_owner && !writable) return {};
  return fail(Reason::kInvalidArgument,
              "The directory " + name + " belongs to user " + std::to_string(info.st_uid) +
                  " with mode " + mode_text(info.st_mode) + ", so that other users than " +
                  own_user() + ", who runs this, may change it. Choose another directory, or " +
                  (trusted_owner ? "take the permission away: chmod " + mode_text(mode) + " "
                                 : "make it yours: chown " + own_user() + " ") +
                  name + ".");
}

}  // namespace berth::process
