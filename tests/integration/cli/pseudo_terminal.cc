#include "tests/integration/cli/pseudo_terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <stdexcept>

namespace berth::cli::test {
namespace {

constexpr std::chrono::seconds kGenerous{60};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

}  // namespace

PseudoTerminal::PseudoTerminal(const std::vector<std::string>& arguments,
                               const std::vector<std::string>& environment, Size size) {
  // Prepared before the fork: this process has threads.
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(environment);
  winsize window{};
  window.ws_row = size.rows;
  window.ws_col = size.columns;
  int terminal = -1;
  pid_ = ::forkpty(&terminal, nullptr, nullptr, &window);
  if (pid_ < 0) throw std::runtime_error("forkpty");
  if (pid_ == 0) {
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  terminal_.reset(terminal);
  ::fcntl(terminal, F_SETFD, FD_CLOEXEC);
}

PseudoTerminal::~PseudoTerminal() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

void PseudoTerminal::type(const std::string& keys) {
  std::size_t done = 0;
  while (done < keys.size()) {
    const ssize_t count = ::write(terminal_.get(), keys.data() + done, keys.size() - done);
    if (count > 0) done += static_cast<std::size_t>(count);
    if (count < 0 && errno != EINTR) return;
    // A terminal's queue is small: take what the program echoes meanwhile.
    static_cast<void>(read_more(0));
  }
}

bool PseudoTerminal::read_more(int timeout_ms) {
  pollfd waits{terminal_.get(), POLLIN, 0};
  if (::poll(&waits, 1, timeout_ms) <= 0) return false;
  std::array<char, 4096> buffer{};
  const ssize_t count = ::read(terminal_.get(), buffer.data(), buffer.size());
  if (count <= 0) return false;
  screen_.append(buffer.data(), static_cast<std::size_t>(count));
  return true;
}

bool PseudoTerminal::wait_for(const std::string& text) {
  const auto until = std::chrono::steady_clock::now() + kGenerous;
  while (true) {
    const std::size_t at = screen_.find(text, seen_);
    if (at != std::string::npos) {
      seen_ = at + text.size();
      return true;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    if (left.count() <= 0 || !read_more(static_cast<int>(left.count()))) return false;
  }
}

std::optional<int> PseudoTerminal::wait_end() {
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  const auto until = std::chrono::steady_clock::now() + kGenerous;
  // What it still writes must be taken, or it could not end.
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    std::array<pollfd, 2> waits = {pollfd{process.get(), POLLIN, 0},
                                   pollfd{terminal_.get(), POLLIN, 0}};
    if (::poll(waits.data(), waits.size(), static_cast<int>(left.count())) <= 0) continue;
    if (waits[0].revents != 0) break;
    if (!read_more(0) && (waits[1].revents & POLLIN) == 0) {
      // The terminal is hung up; only the process is left to wait for.
      if (::poll(waits.data(), 1, static_cast<int>(left.count())) <= 0) return std::nullopt;
      break;
    }
  }
  while (read_more(0)) {
  }
  int status = 0;
  if (::waitpid(pid_, &status, 0) != pid_) return std::nullopt;
  pid_ = -1;
  return status;
}

void PseudoTerminal::signal(int number) const {
  ::kill(pid_, number);
}

void PseudoTerminal::hold_output() const {
  std::array<char, 64> name{};
  if (::ptsname_r(terminal_.get(), name.data(), name.size()) != 0) {
    throw std::runtime_error("ptsname_r");
  }
  const UniqueFd other_end(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!other_end || ::tcflow(other_end.get(), TCOOFF) != 0) throw std::runtime_error("tcflow");
}

bool PseudoTerminal::cooked() const {
  termios modes{};
  if (::tcgetattr(terminal_.get(), &modes) != 0) return false;
  return (modes.c_lflag & (ICANON | ECHO | ISIG)) == (ICANON | ECHO | ISIG);
}

}  // namespace berth::cli::test
