// berth-shim -- PROGRAM ARGV0 [ARGUMENT…]
//
// Runs a program that berth did not write below itself, so that nothing of it outlives the
// supervisor (L4). It is the subreaper of all that the program starts. When its stdin ends or its
// parent does, it kills them all; when the program ends it kills what is left of them, and ends as
// the program did. SIGTERM and the like go to the program's process group.
//
// Environment, directory, stdout and stderr are handed on; stdin is /dev/null. To fd 3, where there
// is one, it says "started" and "listening" when the program runs, or "failed ERRNO" when it
// cannot be executed.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>

#include "common/errno_text.h"
#include "common/fd.h"
#include "supervisor/process/shim/descendants.h"
#include "supervisor/process/shim/report.h"

namespace berth::process::shim {
namespace {

constexpr int kNotifyFd = 3;
constexpr int kCannotExecute = 127;  // as a shell says it
constexpr int kFailed = 125;         // the shim itself

// How the program ended.
struct End {
  bool known = false;
  bool signalled = false;
  int number = 0;  // exit status or signal
};

void tell(std::string_view text) {
  // Nobody listens where it was started by hand; SIGPIPE is blocked.
  if (::write(kNotifyFd, text.data(), text.size()) < 0) return;
}

// Before the program runs: says on both ways that it never will.
int complain(const char* what) {
  const int error = errno;
  std::fprintf(stderr, "berth-shim: %s: %s\n", what, errno_text(error).c_str());
  tell(failed_line(error));
  return kFailed;
}

// In the child. Returns only the errno of what went wrong.
int become_program(char* const* argv, pid_t shim) {
  if (::setpgid(0, 0) != 0) return errno;
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno;
  // The shim may have ended before the line above.
  if (::getppid() != shim) return ESRCH;
  const int none = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (none < 0 || ::dup2(none, 0) < 0) return errno;
  sigset_t nothing{};
  ::sigemptyset(&nothing);
  ::sigprocmask(SIG_SETMASK, &nothing, nullptr);
  ::execv(argv[0], argv + 1);
  return errno;
}

// Ends this process as the program ended.
[[noreturn]] void end_as(const End& end) {
  if (!end.signalled) ::_exit(end.number);
  ::signal(end.number, SIG_DFL);
  sigset_t one{};
  ::sigemptyset(&one);
  ::sigaddset(&one, end.number);
  ::raise(end.number);  // pending until it is unblocked
  ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
  constexpr int kSignalBase = 128;  // a signal that is ignored by default, such as SIGCHLD
  ::_exit(kSignalBase + end.number);
}

// The life of one program below the shim. One thread.
class Shim {
 public:
  // `argv`: the program's path and its argv, with a null at the end.
  int run(char* const* argv) {
    // The supervisor's death shall not kill this process before it has killed the others.
    const pid_t parent = ::getppid();
    if (::prctl(PR_SET_PDEATHSIG, 0) != 0) return complain("prctl(PR_SET_PDEATHSIG)");
    // Where the parent cannot be seen (it is outside of our container) the end of stdin must do.
    supervisor_.reset(static_cast<int>(::syscall(SYS_pidfd_open, parent, 0)));
    if (::getppid() != parent) return kFailed;
    if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return complain("prctl(PR_SET_CHILD_SUBREAPER)");
    ::fcntl(kNotifyFd, F_SETFD, FD_CLOEXEC);
    sigset_t all{};
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    signals_.reset(::signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) return complain("signalfd");
    if (const int failed = start(argv); failed != 0) return failed;
    watch();
    end_descendants();
    // What it was made to end itself is a kill, for whoever asks how it went.
    if (!end_.known) end_ = {true, true, SIGKILL};
    end_as(end_);
  }

 private:
  int start(char* const* argv) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return complain("pipe");
    executed_.reset(ends[0]);
    UniqueFd report(ends[1]);
    const pid_t self = ::getpid();
    program_ = ::fork();
    if (program_ < 0) return complain("fork");
    if (program_ == 0) {
      const int error = become_program(argv, self);
      if (::write(report.get(), &error, sizeof error) < 0) ::_exit(kFailed);
      ::_exit(kCannotExecute);
    }
    return 0;
  }

  // Until the program ends or everything has to.
  void watch() {
    while (!end_.known) {
      std::array<pollfd, 4> waits{{{signals_.get(), POLLIN, 0},
                                   {0, POLLIN, 0},
                                   {supervisor_.get(), POLLIN, 0},
                                   {executed_.get(), POLLIN, 0}}};
      // Without an end: these are all that can happen. Negative fds are passed over.
      if (::poll(waits.data(), waits.size(), -1) < 0) {
        if (errno == EINTR) continue;
        return;
      }
      if (waits[3].revents != 0) on_executed();
      if (waits[0].revents != 0) on_signals();
      if (waits[2].revents != 0) return;
      if (waits[1].revents != 0 && stdin_ended()) return;
    }
  }

  // The pipe ends without a word when the program is executed.
  void on_executed() {
    int error = 0;
    const ssize_t got = ::read(executed_.get(), &error, sizeof error);
    if (got < 0 && errno == EINTR) return;
    executed_.reset();
    if (got == sizeof error) {
      tell(failed_line(error));
    } else {
      tell(std::string(kStarted) + "\nlistening\n");
    }
    ::close(kNotifyFd);
  }

  void on_signals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      switch (info.ssi_signo) {
        case SIGCHLD:
          break;
        case SIGTERM:
        case SIGINT:
        case SIGHUP:
        case SIGQUIT:
        case SIGUSR1:
        case SIGUSR2:
          // Not reaped, so that the number is its own.
          if (!end_.known) ::kill(-program_, static_cast<int>(info.ssi_signo));
          break;
        default:
          break;
      }
    }
    reap();
  }

  void reap() {
    siginfo_t info{};
    while (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0) {
      if (info.si_pid == program_) {
        end_ = {true, info.si_code != CLD_EXITED, info.si_status};
      }
      info = {};
    }
  }

  static bool stdin_ended() {
    std::array<char, 256> ignored{};
    const ssize_t got = ::read(0, ignored.data(), ignored.size());
    return got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
  }

  UniqueFd supervisor_;
  UniqueFd signals_;
  UniqueFd executed_;  // until it is known whether the program runs
  pid_t program_ = -1;
  End end_;
};

}  // namespace
}  // namespace berth::process::shim

int main(int argc, char** argv) {
  constexpr int kLeast = 4;
  if (argc < kLeast || std::string_view(argv[1]) != "--") {
    std::fputs(
        "usage: berth-shim -- PROGRAM ARGV0 [ARGUMENT...]\n"
        "Part of berth: runs PROGRAM so that nothing of it outlives berthd.\n",
        stderr);
    return 2;
  }
  berth::process::shim::Shim shim;
  return shim.run(argv + 2);
}
