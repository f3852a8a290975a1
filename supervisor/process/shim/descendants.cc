#include "supervisor/process/shim/descendants.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <ctime>
#include <vector>

#include "common/fd.h"
#include "supervisor/process/proc.h"

namespace berth::process::shim {
namespace {

// Between two looks when no child ends: the next one finds what was forked meanwhile.
constexpr timespec kPause{0, 5'000'000};

// False when there is no child any more.
bool reap_ended() {
  while (true) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG) != 0) {
      if (errno == EINTR) continue;
      return false;
    }
    if (info.si_pid == 0) return true;
  }
}

// Kills `pid` if it is a child of `parent`. Only a number that is looked at through its pidfd first
// is sure to be the process that was found: its parent may have reaped it meanwhile.
void kill_child_of(pid_t parent, pid_t pid) {
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) return;
  const auto stat = read_stat(pid);
  if (!stat || stat->parent != parent) return;
  ::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
}

// One look at the whole tree. What hides from it by losing its parent comes to this process, where
// the next look finds it.
void kill_all() {
  const pid_t self = ::getpid();
  std::vector<pid_t> parents = {self};
  // A bound for one look only: the next one goes on.
  constexpr std::size_t kMost = 100'000;
  for (std::size_t i = 0; i < parents.size() && parents.size() < kMost; ++i) {
    for (const pid_t child : children_of(parents[i])) {
      parents.push_back(child);
      kill_child_of(parents[i], child);
    }
  }
}

}  // namespace

void end_descendants() {
  sigset_t child_signal{};
  ::sigemptyset(&child_signal);
  ::sigaddset(&child_signal, SIGCHLD);
  while (reap_ended()) {
    kill_all();
    ::sigtimedwait(&child_signal, nullptr, &kPause);
  }
}

}  // namespace berth::process::shim
