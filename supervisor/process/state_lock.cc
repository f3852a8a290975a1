#include "supervisor/process/state_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <utility>

#include "common/errno_text.h"
#include "supervisor/process/directories.h"

namespace berth::process {
namespace {

// The pid that the file holds, for a message; 0 where it holds none.
pid_t holder_of(int file) {
  std::array<char, 32> text{};
  const ssize_t got = ::pread(file, text.data(), text.size(), 0);
  pid_t pid = 0;
  if (got > 0) std::from_chars(text.data(), text.data() + got, pid);
  return pid;
}

}  // namespace

Result<StateLock> StateLock::acquire(const std::string& state_dir) {
  if (auto made = ensure_private_directory(state_dir, S_IRWXU); !made) {
    return fail(Reason::kInvalidArgument, "server.state_dir: " + made.error().message);
  }
  const std::string path = state_dir + "/lock";
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                       S_IRUSR | S_IWUSR));
  if (!file) {
    return fail(Reason::kInvalidArgument,
                "server.state_dir: " + path + " cannot be opened: " + errno_text(errno) + ".");
  }
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return fail(Reason::kInvalidArgument,
                  "server.state_dir: " + path + " cannot be locked: " + errno_text(errno) + ".");
    }
    const pid_t holder = holder_of(file.get());
    const std::string who =
        holder > 0 ? "another berthd (pid " + std::to_string(holder) + ")" : "another berthd";
    return fail(Reason::kConflict, "The state directory " + state_dir + " is in use by " + who +
                                       ". Stop it, or give this one its own server.state_dir.");
  }
  // Written first and cut afterwards, so that a reader in between finds a number at least.
  const std::string pid = std::to_string(::getpid()) + "\n";
  const ssize_t wrote = ::pwrite(file.get(), pid.data(), pid.size(), 0);
  if (wrote != static_cast<ssize_t>(pid.size()) ||
      ::ftruncate(file.get(), static_cast<off_t>(pid.size())) != 0) {
    // A full disk. The lock is held; only the message of a second daemon is poorer.
  }
  return StateLock(std::move(file));
}

}  // namespace berth::process
