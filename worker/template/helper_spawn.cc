#include "worker/template/helper_spawn.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "common/errno_text.h"

namespace berth::worker {
namespace {

// What the program may know of the worker's environment: the worker's own may lead to the libraries
// of libllama, which this program must not load.
std::vector<std::string> environment() {
  std::vector<std::string> kept = {"LC_ALL=C"};
  for (const char* const name : {"TZ", "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"}) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment once threads run
    if (const char* const value = std::getenv(name))
      kept.push_back(std::string(name) + "=" + value);
  }
  return kept;
}

std::vector<char*> c_strings(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (auto& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// posix_spawn's two descriptions of a child, with their destructors.
class SpawnPlan {
 public:
  SpawnPlan() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
  }

  // No blocked and no ignored signals, nothing open but the socket (and /dev/null until the program
  // closes it).
  void describe(int socket) {
    ::posix_spawn_file_actions_adddup2(&actions_, socket, STDIN_FILENO);
    ::posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
    sigset_t all;
    sigset_t none;
    sigfillset(&all);
    sigemptyset(&none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }

  int spawn(pid_t& pid, const std::string& program, char* const* argv, char* const* environment) {
    return ::posix_spawn(&pid, program.c_str(), &actions_, &attributes_, argv, environment);
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace

Error helper_not_started(const std::string& program, const std::string& why) {
  return {Reason::kInternal, "The program that renders chat templates cannot be started: " +
                                 program + ": " + why + ". Install it beside berth-worker."};
}

Result<SpawnedHelper> spawn_helper(const std::string& program) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return fail(helper_not_started(program, "socketpair: " + errno_text(errno)));
  }
  UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  if (::fcntl(ours.get(), F_SETFL, O_NONBLOCK) != 0) {
    return fail(helper_not_started(program, "fcntl: " + errno_text(errno)));
  }
  std::vector<std::string> arguments = {program, "--serve", std::to_string(::getpid())};
  auto kept = environment();
  const auto argv = c_strings(arguments);
  const auto variables = c_strings(kept);
  SpawnPlan plan;
  plan.describe(theirs.get());
  pid_t pid = -1;
  if (const int problem = plan.spawn(pid, program, argv.data(), variables.data()); problem != 0) {
    return fail(helper_not_started(program, errno_text(problem)));
  }
  return SpawnedHelper{pid, std::move(ours)};
}

}  // namespace berth::worker
