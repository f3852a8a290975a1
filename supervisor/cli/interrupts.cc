#include "supervisor/cli/interrupts.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <thread>

namespace berth::cli {
namespace {

// What the handler needs. Set once, before the handler is.
int pipe_to_write = -1;
bool has_terminal = false;
termios terminal_before{};
std::atomic_flag terminating = ATOMIC_FLAG_INIT;

// Runs on any thread, also where all others are blocked: async-signal-safe calls only.
void on_signal(int signal) {
  const int error = errno;
  const bool terminates = signal == SIGTERM || signal == SIGHUP;
  if (terminates && terminating.test_and_set()) {
    // Whoever was to leave for the first one does not come to it.
    std::signal(SIGTTOU, SIG_IGN);
    if (has_terminal) ::tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
    std::signal(signal, SIG_DFL);
    ::kill(::getpid(), signal);
  } else {
    const char number = static_cast<char>(signal);
    // A full pipe holds enough of them already.
    static_cast<void>(!::write(pipe_to_write, &number, 1));
  }
  errno = error;
}

}  // namespace

void SignalInterrupts::take_over(Again again) {
  again_ = again;
  if (signals_) return;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
  signals_.reset(ends[0]);
  pipe_to_write = ends[1];
  has_terminal = ::tcgetattr(STDIN_FILENO, &terminal_before) == 0;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    // What whoever started this program has switched off (nohup, a shell's `&`) stays so.
    if (action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

std::optional<int> SignalInterrupts::next() {
  char number = 0;
  if (::read(signals_.get(), &number, 1) != 1) return std::nullopt;
  return number;
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
        caught_signal_ = *signal;
      } else if (caught == Caught::kNone) {
        caught = Caught::kInterrupt;
        caught_signal_ = *signal;
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
