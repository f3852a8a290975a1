#include "supervisor/process/directories.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstddef>

#include "supervisor/process/system_error.h"

namespace berth::process {
namespace {

bool is_directory(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
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

}  // namespace berth::process
