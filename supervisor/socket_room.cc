#include "supervisor/socket_room.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "common/errno_text.h"
#include "common/fd.h"
#include "supervisor/process/directories.h"
#include "supervisor/process/launch_error.h"
#include "supervisor/worker_command.h"

namespace berth {
namespace {

constexpr mode_t kOwnDirectory = S_IRWXU;
constexpr mode_t kOwnFile = S_IRUSR | S_IWUSR;

}  // namespace

Status make_room_for_socket(const std::string& run_dir) {
  const std::string directory = worker_directory(run_dir);
  if (const Status made = process::ensure_private_directory(directory, kOwnDirectory); !made) {
    return fail(process::shortage_error(made.error().message));
  }
  // A socket takes what a file takes.
  const std::string probe = directory + "/.room." + std::to_string(::gettid());
  const UniqueFd file(::open(probe.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kOwnFile));
  const int error = errno;
  if (file) {
    ::unlink(probe.c_str());
    return {};
  }
  return fail(process::shortage_error("A worker's socket cannot be made in " + directory + ": " +
                                      errno_text(error) + "."));
}

}  // namespace berth
