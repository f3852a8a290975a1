#include "supervisor/cli/doctor/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "common/errno_text.h"
#include "common/fd.h"
#include "supervisor/cli/environment.h"

namespace berth::cli {
namespace {

constexpr std::size_t kMostOutput = std::size_t{16} << 10U;

// Milliseconds until `until`, rounded up; 0 when it has passed.
int left_until(SteadyTime until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - system_now());
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

// As execve() wants them.
std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

// Reads until the end of the output or the deadline; true at the end.
bool read_until(int fd, SteadyTime until, std::string& output) {
  while (true) {
    pollfd waits{fd, POLLIN, 0};
    const int ready = ::poll(&waits, 1, left_until(until));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    std::array<char, 4096> buffer{};
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    const std::size_t room = kMostOutput - std::min(kMostOutput, output.size());
    output.append(buffer.data(), std::min(room, static_cast<std::size_t>(count)));
  }
}

}  // namespace

Ran run_program(const std::vector<std::string>& arguments, std::chrono::milliseconds deadline,
                const std::vector<std::string>& environment) {
  Ran ran;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    ran.error = errno_text(errno);
    return ran;
  }
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, writing.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, writing.get(), 2);
  std::vector<char*> argv = pointers(arguments);
  std::vector<char*> variables = pointers(environment);
  pid_t pid = 0;
  const int failed =
      ::posix_spawn(&pid, argv.front(), &actions, nullptr, argv.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    ran.error = errno_text(failed);
    return ran;
  }
  ran.started = true;
  writing.reset();
  const SteadyTime until = system_now() + deadline;
  ran.timed_out = !read_until(reading.get(), until, ran.output);
  if (!ran.timed_out) {
    // The output ended; the process may live on. Its pidfd becomes readable when it ends.
    const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    pollfd waits{process.get(), POLLIN, 0};
    int ready = 0;
    if (process) {
      while ((ready = ::poll(&waits, 1, left_until(until))) < 0 && errno == EINTR) {
      }
    }
    ran.timed_out = process && ready <= 0;
  }
  if (ran.timed_out) ::kill(pid, SIGKILL);
  while (::waitpid(pid, &ran.status, 0) < 0 && errno == EINTR) {
  }
  return ran;
}

}  // namespace berth::cli
