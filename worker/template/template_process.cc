#include "worker/template/template_process.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include "common/errno_text.h"
#include "worker/template/frames.h"
#include "worker/template/helper_limits.h"
#include "worker/template/helper_spawn.h"

namespace berth::worker {
namespace {

using std::chrono::milliseconds;

SteadyTime steady_time() {
  return SteadyTime(std::chrono::steady_clock::now().time_since_epoch());
}

constexpr auto kSlice = milliseconds(50);  // between two looks at whether it is still wanted
constexpr auto kEndBound = milliseconds(1000);

// Reaps the child, if it is dead. Its number is its own until then.
bool reaped(pid_t pid) {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG) != 0) {
    return errno != EINTR;
  }
  return info.si_pid != 0;
}

// Killed processes of this thread that were not dead yet.
class Undead {
 public:
  // A machine where so many cannot die has no use for one more.
  static constexpr std::size_t kMost = 4;

  void add(HelperReaper reaper) { reapers_.push_back(std::move(reaper)); }
  // One that nobody reaps.
  void add(pid_t pid) { pids_.push_back(pid); }
  // How many are not dead by now.
  std::size_t count() {
    std::erase_if(reapers_,
                  [](const HelperReaper& one) { return one.ended(milliseconds(0)).has_value(); });
    std::erase_if(pids_, &reaped);
    return reapers_.size() + pids_.size();
  }

 private:
  std::vector<HelperReaper> reapers_;
  std::vector<pid_t> pids_;
};

Undead& undead() {
  thread_local Undead of_this_thread;
  return of_this_thread;
}

// In the worker's sandbox kill() reaches only the worker itself.
void kill_by(const UniqueFd& pidfd) {
  ::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
}

// Of one that was killed and that no thread waits for. Takes next to nothing, and at most
// kEndBound.
void reap_here(pid_t pid, const UniqueFd& pidfd) {
  pollfd ended{pidfd.get(), POLLIN, 0};
  if (pidfd) ::poll(&ended, 1, static_cast<int>(kEndBound.count()));
  if (!reaped(pid)) undead().add(pid);
}

}  // namespace

Result<TemplateProcess> TemplateProcess::start(const std::string& program) {
  if (const auto left = undead().count(); left >= Undead::kMost) {
    return fail(
        helper_not_started(program, std::to_string(left) + " of them were killed and do not die"));
  }
  auto spawned = spawn_helper(program);
  if (!spawned) return fail(spawned.error());
  // Before anybody reaps it: the number is still its own.
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, spawned->pid, 0)));
  const int pidfd_error = errno;
  if (!pidfd) ::kill(spawned->pid, SIGKILL);
  auto reaper = HelperReaper::watch(spawned->pid);
  if (!reaper) {
    if (pidfd) kill_by(pidfd);
    reap_here(spawned->pid, pidfd);
    return fail(helper_not_started(program, reaper.error().message));
  }
  if (!pidfd) {
    undead().add(*std::move(reaper));
    return fail(helper_not_started(program, "pidfd_open: " + errno_text(pidfd_error)));
  }
  return TemplateProcess(spawned->pid, std::move(pidfd), std::move(spawned->socket),
                         *std::move(reaper));
}

TemplateProcess& TemplateProcess::operator=(TemplateProcess&& other) noexcept {
  if (this == &other) return *this;
  end();
  pid_ = std::exchange(other.pid_, -1);
  pidfd_ = std::move(other.pidfd_);
  socket_ = std::move(other.socket_);
  reaper_ = std::exchange(other.reaper_, std::nullopt);
  limits_ = other.limits_;
  deadline_ = other.deadline_;
  retired_ = other.retired_;
  return *this;
}

bool TemplateProcess::ended() const {
  if (pid_ < 0) return true;
  pollfd process{pidfd_.get(), POLLIN, 0};
  return ::poll(&process, 1, 0) > 0;
}

TemplateProcess::Ready TemplateProcess::wait(short events, const Abandoned& abandoned) {
  while (true) {
    std::array<pollfd, 2> fds = {{{socket_.get(), events, 0}, {pidfd_.get(), POLLIN, 0}}};
    // Before its bytes count: a process that sends one now and then would never be late.
    if (abandoned && abandoned()) return Ready::kAbandoned;
    const auto left = std::chrono::ceil<milliseconds>(deadline_ - steady_time());
    if (left <= milliseconds(0)) return Ready::kLate;
    const auto timeout = std::min(left, kSlice);
    const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(timeout.count()));
    if (ready < 0 && errno != EINTR) return Ready::kEnded;
    // What it said before it ended is read first.
    if (ready > 0 && (fds[0].revents & events) != 0) return Ready::kReady;
    if (ready > 0) return Ready::kEnded;
  }
}

Status TemplateProcess::send(std::string_view frame, const TemplateLimits& limits,
                             const Abandoned& abandoned) {
  limits_ = limits;
  deadline_ = steady_time() + limits.wall;
  while (!frame.empty()) {
    const auto put = ::send(socket_.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno != EAGAIN) return fail(gone(Ready::kEnded));
    if (put > 0) frame.remove_prefix(static_cast<std::size_t>(put));
    if (frame.empty()) break;
    if (const auto ready = wait(POLLOUT, abandoned); ready != Ready::kReady) {
      return fail(gone(ready));
    }
  }
  return {};
}

Status TemplateProcess::receive(char* bytes, std::size_t size, const Abandoned& abandoned) {
  while (size > 0) {
    const auto got = ::recv(socket_.get(), bytes, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0 || (got < 0 && errno != EAGAIN)) return fail(gone(Ready::kEnded));
    if (got > 0) {
      bytes += got;
      size -= static_cast<std::size_t>(got);
    }
    if (size == 0) break;
    if (const auto ready = wait(POLLIN, abandoned); ready != Ready::kReady) {
      return fail(gone(ready));
    }
  }
  return {};
}

Result<std::string> TemplateProcess::answer(const Abandoned& abandoned) {
  std::array<char, FrameBounds::kHeader> header{};
  if (auto got = receive(header.data(), header.size(), abandoned); !got) return fail(got.error());
  const auto size = frame_size({header.data(), header.size()});
  if (size > FrameBounds::kAnswer) {
    end();
    return fail(Reason::kTemplateFailed,
                "The model's chat template made a prompt of more than 16 MiB.");
  }
  std::string body(size, '\0');
  if (auto got = receive(body.data(), size, abandoned); !got) return fail(got.error());
  return body;
}

Error TemplateProcess::gone(Ready why) {
  switch (why) {
    case Ready::kAbandoned:
      end();
      return {Reason::kDeadline, "Nobody waits for this prompt any more."};
    case Ready::kLate:
      end();
      return {Reason::kTemplateFailed, "The model's chat template was not done within " +
                                           std::to_string(limits_.wall.count()) +
                                           " ms and was ended."};
    case Ready::kReady:
    case Ready::kEnded:
      break;
  }
  return ended_error();
}

// Says how it ended.
Error TemplateProcess::ended_error() {
  const auto end_seen = reaper_->ended(kEndBound);
  end();
  const auto info = end_seen.value_or(siginfo_t{});
  const auto failed = [](const std::string& how) {
    return Error(Reason::kTemplateFailed, "The model's chat template " + how);
  };
  if (info.si_code == CLD_EXITED && info.si_status == HelperExit::kMemory) {
    return failed("needs more than " + std::to_string(HelperLimits::kAddressSpace >> 20U) +
                  " MiB of memory and was ended.");
  }
  if (info.si_code == CLD_EXITED && info.si_status == HelperExit::kStack) {
    return failed("calls itself too deeply: its " + std::to_string(HelperLimits::kStack >> 20U) +
                  " MiB of stack are full.");
  }
  if (info.si_code == CLD_EXITED && info.si_status == HelperExit::kNoLimits) {
    return {Reason::kInternal,
            "The program that renders chat templates does not run without limits, and something "
            "refuses setrlimit() to it. Look for a system call filter around berthd."};
  }
  if (info.si_code == CLD_KILLED && info.si_status == SIGXCPU) {
    return failed("computes for too long: the " + std::to_string(HelperLimits::kCpuSeconds) +
                  " s of processor time of its program are used up.");
  }
  if (info.si_code == CLD_KILLED && info.si_status == SIGSYS) {
    return failed("made its program do what it may not do; it was ended.");
  }
  if (info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED) {
    const char* const name = ::sigabbrev_np(info.si_status);
    return failed(std::string("crashed: its program was ended by SIG") +
                  (name != nullptr ? name : "?") + ".");
  }
  retired_ = info.si_code == CLD_EXITED && info.si_status == 0;
  return failed("ended its program with status " + std::to_string(info.si_status) + ".");
}

void TemplateProcess::end() {
  socket_.reset();
  if (std::exchange(pid_, -1) <= 0) return;
  kill_by(pidfd_);
  if (!reaper_->ended(kEndBound)) undead().add(*std::move(reaper_));
  reaper_.reset();
  pidfd_.reset();
}

}  // namespace berth::worker
