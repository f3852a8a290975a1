#include "tests/fault_worker/fault_deeds.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "common/fd.h"

namespace berth::fault {
namespace {

constexpr auto kStep = std::chrono::milliseconds(50);
constexpr unsigned kChildSeconds = 600;
constexpr std::size_t kChunk = 64UL << 10U;

using Steady = std::chrono::steady_clock;

// The share of a rate that one step has.
std::uint64_t per_step(std::uint64_t per_second) {
  return std::max<std::uint64_t>(per_second * kStep.count() / 1000, 1);
}

// Only async-signal-safe calls: the process has other threads.
[[noreturn]] void be_a_child(const Order& order) {
  if (order.own_session) ::setsid();
  sigset_t none;
  sigemptyset(&none);
  ::signal(SIGTERM, order.ignores_term ? SIG_IGN : SIG_DFL);
  ::signal(SIGINT, order.ignores_term ? SIG_IGN : SIG_DFL);
  ::signal(SIGHUP, order.ignores_term ? SIG_IGN : SIG_DFL);
  ::signal(SIGALRM, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::prctl(PR_SET_NAME, "fault-child");
  ::close_range(3, ~0U, 0);
  ::alarm(kChildSeconds);
  while (true) ::pause();
}

}  // namespace

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void sleep_for(Duration time) {
  std::this_thread::sleep_for(time);
}

void stall() {
  while (true) ::pause();
}

void die_by(int signal) {
  ::signal(signal, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  ::kill(::getpid(), signal);
  stall();
}

void copy_to_stderr(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  write_all(STDERR_FILENO, {std::string(std::istreambuf_iterator<char>(in), {})});
}

void flood(std::uint64_t bytes) {
  std::uint64_t number = 0;
  std::uint64_t done = 0;
  while (done < bytes) {
    std::string lines;
    while (lines.size() < kChunk) {
      lines += "flood line " + std::to_string(++number) + ": nothing that anybody wants to read\n";
    }
    write_all(STDERR_FILENO, lines);
    done += lines.size();
  }
}

void wait_for_file(const std::string& file) {
  while (::access(file.c_str(), F_OK) != 0) sleep_for(std::chrono::milliseconds(2));
}

void touch(const std::string& file) {
  const UniqueFd made(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

void read_slowly(const std::string& file, std::uint64_t bytes_per_second, Duration time) {
  const UniqueFd in(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in) return;
  const auto end = Steady::now() + time;
  const std::uint64_t step = per_step(bytes_per_second);
  std::vector<char> buffer(std::min<std::uint64_t>(step, kChunk * 16));
  off_t offset = 0;
  ::posix_fadvise(in.get(), 0, 0, POSIX_FADV_RANDOM);  // no reading ahead
  while (Steady::now() < end) {
    std::uint64_t left = step;
    while (left > 0) {
      const auto want = std::min<std::uint64_t>(left, buffer.size());
      const auto got = ::pread(in.get(), buffer.data(), want, offset);
      if (got < 0 && errno != EINTR) return;
      if (got == 0 && offset == 0) return;
      if (got == 0) {
        ::posix_fadvise(in.get(), 0, 0, POSIX_FADV_DONTNEED);
        offset = 0;
      } else if (got > 0) {
        offset += got;
        left -= static_cast<std::uint64_t>(got);
      }
    }
    sleep_for(kStep);
  }
}

void burn(std::uint64_t percent, Duration time) {
  const auto end = Steady::now() + time;
  const auto busy = kStep * static_cast<int>(percent) / 100;
  while (Steady::now() < end) {
    const auto until = Steady::now() + busy;
    while (Steady::now() < until) {
      // computes
    }
    sleep_for(kStep - busy);
  }
}

void leak(std::uint64_t bytes_per_second, std::uint64_t bytes) {
  const std::uint64_t step = per_step(bytes_per_second);
  std::uint64_t kept = 0;
  while (kept < bytes) {
    const auto size = std::min(step, bytes - kept);
    void* const memory =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      write_all(STDERR_FILENO, "fault_worker: no memory is left\n");
      return;
    }
    std::memset(memory, 0x5a, size);
    kept += size;
    sleep_for(kStep);
  }
}

void spawn(const Order& order) {
  for (std::uint64_t i = 0; i < order.number; ++i) {
    const pid_t child = ::fork();
    if (child < 0) return;
    if (child > 0) {
      if (order.orphan) ::waitpid(child, nullptr, 0);
      continue;
    }
    if (order.orphan && ::fork() != 0) ::_exit(0);
    be_a_child(order);
  }
}

}  // namespace berth::fault
