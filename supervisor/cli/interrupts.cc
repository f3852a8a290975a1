#include "supervisor/cli/interrupts.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <thread>

namespace berth::cli {
namespace {

// Without those that whoever started this program has switched off (nohup, a shell's `&`): they
// stay so.
sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&set, signal);
  }
  return set;
}

}  // namespace

void SignalInterrupts::take_over(Again again) {
  again_ = again;
  if (signals_) return;
  const sigset_t set = watched_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

std::optional<int> SignalInterrupts::next() {
  signalfd_siginfo info{};
  if (::read(signals_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

Caught SignalInterrupts::during(const std::function<void(const std::stop_token&)>& work) {
  std::stop_source source;
  if (!signals_) {
    work(source.get_token());
    return Caught::kNone;
  }
  const UniqueFd finished(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  std::atomic<Caught> caught{Caught::kNone};

  std::thread watcher([&] {
    std::array<pollfd, 2> fds = {pollfd{signals_.get(), POLLIN, 0},
                                 pollfd{finished.get(), POLLIN, 0}};
    while (true) {
      // Ends with the work, by `finished`.
      if (::poll(fds.data(), fds.size(), -1) < 0) continue;
      if (fds[1].revents != 0) return;
      const auto signal = next();
      if (!signal || *signal == SIGWINCH) continue;
      if (*signal == SIGTSTP) {
        ::kill(::getpid(), SIGSTOP);
        continue;
      }
      if (caught != Caught::kNone && again_ == Again::kEndsProgram) end_by_signal(*signal);
      if (*signal != SIGINT) {
        caught = Caught::kTerminate;
      } else if (caught == Caught::kNone) {
        caught = Caught::kInterrupt;
      }
      source.request_stop();
    }
  });

  work(source.get_token());

  const std::uint64_t one = 1;
  while (::write(finished.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  watcher.join();
  return caught;
}

void end_by_signal(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ::kill(::getpid(), signal);
  std::_Exit(128 + signal);
}

}  // namespace berth::cli
