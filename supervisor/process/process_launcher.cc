#include "supervisor/process/process_launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "supervisor/process/child_start.h"
#include "supervisor/process/instance_mark.h"
#include "supervisor/process/launch_error.h"
#include "supervisor/process/leftovers.h"
#include "supervisor/process/paced_thread.h"
#include "supervisor/process/proc.h"
#include "supervisor/process/shim/report.h"
#include "supervisor/process/worker_cgroup.h"

namespace berth::process {
namespace {

using boost::asio::posix::stream_descriptor;
using Living = std::shared_ptr<std::unordered_set<pid_t>>;
using OomKilled = std::shared_ptr<std::deque<pid_t>>;

constexpr std::size_t kMostOomKilled = 64;
// Between two looks whether a cgroup is empty: doubles from the first to the last.
constexpr std::chrono::milliseconds kFirstLook{1};
constexpr std::chrono::milliseconds kLastLook{100};
// How long one try to kill by the mark takes at most, unless it hangs, and until the next: doubles
// from the first to the last.
constexpr std::chrono::milliseconds kMarkKill{10'000};
constexpr std::chrono::milliseconds kFirstMarkPause{15'000};
constexpr std::chrono::milliseconds kLastMarkPause{240'000};

// Cuts what a child writes to its notify pipe into lines. The child is not trusted: a line that is
// too long is dropped, and after kMostLines nothing more is heard.
class NotifyLines {
 public:
  static constexpr std::size_t kMostBytes = 256;
  static constexpr std::size_t kMostLines = 1024;

  // Calls `line` for every line that `bytes` completes.
  template <typename Line>
  void feed(std::string_view bytes, Line line) {
    for (const char c : bytes) {
      if (c != '\n') {
        if (partial_.size() < kMostBytes) {
          partial_ += c;
        } else {
          too_long_ = true;
        }
        continue;
      }
      if (count_ < kMostLines && !too_long_) {
        ++count_;
        line(std::string_view(partial_));
      }
      partial_.clear();
      too_long_ = false;
    }
  }
  [[nodiscard]] bool full() const { return count_ >= kMostLines; }

 private:
  std::string partial_;
  bool too_long_ = false;
  std::size_t count_ = 0;
};

core::ExitStatus to_exit_status(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return core::Exited{info.si_status};
  return core::Signalled{info.si_status, info.si_code == CLD_DUMPED};
}

// One process from its start until it is reaped. Kept alive by its own pending waits, so that it
// is reaped also when its ChildProcess is gone. Core strand only.
class Watch : public std::enable_shared_from_this<Watch> {
 public:
  struct Parts {
    StartedChild child;
    UniqueFd stdin_write;
    UniqueFd notify_read;
    bool below_shim = false;
    std::unique_ptr<WorkerCgroup> cgroup;  // may be null
    std::optional<InstanceMark> mark;
    std::chrono::milliseconds shim_wait{};
    std::chrono::milliseconds oom_sample{};
  };

  Watch(boost::asio::io_context& io, Parts parts, ChildObserver& observer, Living living,
        OomKilled oom_killed)
      : pid_(parts.child.pid),
        pidfd_(io, parts.child.pidfd.release()),
        notify_(io, parts.notify_read.release()),
        stdin_(std::move(parts.stdin_write)),
        below_shim_(parts.below_shim),
        cgroup_(std::move(parts.cgroup)),
        mark_(std::move(parts.mark)),
        shim_wait_(parts.shim_wait),
        oom_sample_(parts.oom_sample),
        insist_(io),
        look_(io),
        observer_(&observer),
        living_(std::move(living)),
        oom_killed_(std::move(oom_killed)) {
    living_->insert(pid_);
  }

  void start() {
    wait_for_exit();
    wait_for_notify();
    if (cgroup_) sample_oom_kills();
  }

  [[nodiscard]] pid_t pid() const { return pid_; }
  void close_stdin() { stdin_.reset(); }
  void signal_group(int signal) {
    // Until it is reaped the number belongs to this process, even when it has ended.
    if (!reaped_) signal_unreaped(signal);
    // Also what left the group, was stopped, or is being forked.
    if (signal == SIGKILL && cgroup_) static_cast<void>(cgroup_->kill());
  }
  void abandon() {
    observer_ = nullptr;
    signal_group(SIGKILL);
  }

 private:
  void signal_unreaped(int signal) {
    if (signal == SIGKILL && below_shim_) return kill_by_shim();
    ::kill(-pid_, signal);
    if (below_shim_) wake_shim();
  }

  // The shim knows all descendants and ends after them, so that its exit proves that all are gone.
  // It is never killed alone, however long they take: they would lose the only process that holds
  // them together. With its cgroup it may be, as that holds them, too.
  void kill_by_shim() {
    close_stdin();
    wake_shim();
    if (std::exchange(insisting_, true)) return;
    kill_unless_ended_at_ = std::chrono::steady_clock::now() + shim_wait_;
    insist(kFirstLook);
  }

  // Until it is reaped: what it has to kill may stop it again.
  void insist(std::chrono::milliseconds next) {
    insist_.expires_after(next);
    insist_.async_wait([self = shared_from_this(), next](const boost::system::error_code& error) {
      if (error || self->reaped_) return;
      self->kill_without_shim();
      self->wake_shim();
      self->insist(std::min(2 * next, kLastLook));
    });
  }

  // When the shim did not manage in time. On a thread of its own, as to read what a process
  // carries may hang like the process itself.
  void kill_without_shim() {
    const auto now = std::chrono::steady_clock::now();
    if (!mark_ || now < kill_unless_ended_at_) return;
    mark_kills_.run(now,
                    [mark = *mark_, shim = pid_] { kill_marked_instance(mark, shim, kMarkKill); });
  }

  // One that was stopped can neither pass on a signal nor see the end of its stdin; to one that
  // runs this does nothing.
  void wake_shim() const { ::kill(pid_, SIGCONT); }

  void wait_for_exit() {
    pidfd_.async_wait(stream_descriptor::wait_read,
                      [self = shared_from_this()](const boost::system::error_code& error) {
                        if (!error) self->on_pidfd();
                      });
  }

  void wait_for_notify() {
    notify_.async_wait(stream_descriptor::wait_read,
                       [self = shared_from_this()](const boost::system::error_code& error) {
                         if (error || !self->notify_.is_open()) return;
                         if (self->read_notify()) self->wait_for_notify();
                       });
  }

  // Reads what is there, within a bound. False when nothing more will come.
  bool read_notify() {
    std::array<char, 4096> part{};
    const ssize_t got = ::read(notify_.native_handle(), part.data(), part.size());
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    lines_.feed(std::string_view(part.data(), static_cast<std::size_t>(got)),
                [this](std::string_view line) {
                  if (observer_ != nullptr) observer_->on_notify(line);
                });
    if (got > 0 && !lines_.full()) return true;
    boost::system::error_code ignored;
    notify_.close(ignored);
    return false;
  }

  void on_pidfd() {
    const auto id = static_cast<id_t>(pidfd_.native_handle());
    siginfo_t info{};
    // Looked at first and reaped afterwards: as long as the process is not reaped its number
    // cannot be given to another group, so that the kill cannot hit a stranger.
    const int peeked = ::waitid(P_PIDFD, id, &info, WEXITED | WNOHANG | WNOWAIT);
    if (peeked == 0 && info.si_pid == 0) {
      wait_for_exit();
      return;
    }
    core::ExitStatus status = core::UnknownExit{};
    if (peeked == 0) {
      ::kill(-pid_, SIGKILL);
      info = {};
      if (::waitid(P_PIDFD, id, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0) {
        status = to_exit_status(info);
      }
    }
    reaped_ = true;
    insist_.cancel();
    look_.cancel();
    living_->erase(pid_);
    boost::system::error_code ignored;
    pidfd_.close(ignored);
    stdin_.reset();
    // What it said before it ended. A pipe holds 64 KiB.
    constexpr int kMostReads = 16;
    for (int i = 0; i < kMostReads && notify_.is_open(); ++i) {
      if (!read_notify()) break;
    }
    if (notify_.is_open()) notify_.close(ignored);
    settle(status, kFirstLook);
  }

  // Until it is reaped; memory.events is a few numbers that the kernel holds ready.
  void sample_oom_kills() {
    look_.expires_after(oom_sample_);
    look_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (error || self->reaped_) return;
      self->oom_kill_count_.sample(self->cgroup_->oom_kills().value_or(0));
      self->sample_oom_kills();
    });
  }

  // Waits until nothing in the cgroup lives. Without an end: as long as something does, its memory
  // is not free (L2), and whoever stops it has bounds of its own.
  void settle(core::ExitStatus status, std::chrono::milliseconds next_look) {
    if (cgroup_ && cgroup_->populated()) {
      static_cast<void>(cgroup_->kill());
      look_.expires_after(next_look);
      look_.async_wait(
          [self = shared_from_this(), status, next_look](const boost::system::error_code& error) {
            if (!error) self->settle(status, std::min(2 * next_look, kLastLook));
          });
      return;
    }
    if (cgroup_ && oom_kill_count_.explains(status, cgroup_->oom_kills().value_or(0))) {
      if (oom_killed_->size() == kMostOomKilled) oom_killed_->pop_front();
      oom_killed_->push_back(pid_);
    }
    cgroup_.reset();
    if (ChildObserver* observer = std::exchange(observer_, nullptr)) observer->on_exit(status);
  }

  pid_t pid_;
  stream_descriptor pidfd_;
  stream_descriptor notify_;
  UniqueFd stdin_;
  const bool below_shim_;
  std::unique_ptr<WorkerCgroup> cgroup_;  // null: it has none, or that is gone
  const std::optional<InstanceMark> mark_;
  const std::chrono::milliseconds shim_wait_;
  const std::chrono::milliseconds oom_sample_;
  OomKillCount oom_kill_count_;
  boost::asio::steady_timer insist_;
  bool insisting_ = false;  // the shim was told to kill
  std::chrono::steady_clock::time_point kill_unless_ended_at_{};
  PacedThread mark_kills_{kFirstMarkPause, kLastMarkPause};
  boost::asio::steady_timer look_;  // at its cgroup
  ChildObserver* observer_;         // null once told, or abandoned
  Living living_;
  OomKilled oom_killed_;
  NotifyLines lines_;
  bool reaped_ = false;
};

class RealChild : public ChildProcess {
 public:
  RealChild(std::shared_ptr<Watch> watch, std::uint64_t start_ticks)
      : watch_(std::move(watch)), pid_(watch_->pid()), start_ticks_(start_ticks) {}
  RealChild(const RealChild&) = delete;
  RealChild& operator=(const RealChild&) = delete;
  ~RealChild() override { watch_->abandon(); }

  [[nodiscard]] pid_t pid() const override { return pid_; }
  [[nodiscard]] std::uint64_t start_ticks() const override { return start_ticks_; }
  void signal_group(int signal) override { watch_->signal_group(signal); }
  void close_stdin() override { watch_->close_stdin(); }

 private:
  std::shared_ptr<Watch> watch_;
  pid_t pid_;
  std::uint64_t start_ticks_;
};

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(launch_error("pipe", errno));
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// Moves an fd above those that the child's own will be.
Result<UniqueFd> lifted(UniqueFd fd) {
  constexpr int kFirstFree = 10;
  UniqueFd high(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kFirstFree));
  if (!high) return fail(launch_error("fcntl(F_DUPFD)", errno));
  return high;
}

std::vector<char*> c_strings(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Reads the first line that the shim writes, and nothing behind it. Returns whether its program
// runs.
Status await_shim(int notify_fd, const std::string& program, std::chrono::milliseconds exec_wait) {
  const auto deadline = std::chrono::steady_clock::now() + exec_wait;
  const std::string step = "execve " + program;
  constexpr std::size_t kLongest = 64;
  std::string line;
  while (line.size() < kLongest) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    pollfd readable{notify_fd, POLLIN, 0};
    if (::poll(&readable, 1, static_cast<int>(left.count())) <= 0) continue;
    char next = 0;
    const ssize_t got = ::read(notify_fd, &next, 1);
    if (got == 0) {
      return fail(Reason::kLoadFailed, step + ": berth-shim ended without a word");
    }
    if (got < 0) continue;
    if (next != '\n') {
      line += next;
      continue;
    }
    if (line == shim::kStarted) return {};
    if (const auto error = shim::error_of(line)) return fail(launch_error(step, *error));
    break;
  }
  return fail(slow_launch_error(program, exec_wait));
}

}  // namespace

RealLauncher::RealLauncher(boost::asio::io_context& io, LauncherOptions options)
    : io_(io),
      options_(std::move(options)),
      living_(std::make_shared<std::unordered_set<pid_t>>()),
      oom_killed_(std::make_shared<std::deque<pid_t>>()) {}

bool RealLauncher::counted_oom_kill(pid_t pid) const {
  return std::ranges::find(*oom_killed_, pid) != oom_killed_->end();
}

std::unique_ptr<WorkerCgroup> RealLauncher::make_cgroup(const std::string& name) {
  if (options_.cgroups == nullptr || name.empty()) return nullptr;
  auto made = options_.cgroups->make(name);
  if (made) return *std::move(made);
  tell_cgroup_problem(made.error().message);
  return nullptr;
}

void RealLauncher::tell_cgroup_problem(const std::string& problem) {
  if (std::exchange(cgroup_problem_told_, true) || !options_.on_cgroup_problem) return;
  options_.on_cgroup_problem(problem);
}

Result<std::unique_ptr<ChildProcess>> RealLauncher::launch(LaunchSpec spec,
                                                           ChildObserver& observer) {
  if (::gettid() != ::getpid()) {
    return fail(Reason::kInternal,
                "launch() was called off the main thread: the child would die with that thread.");
  }
  if (spec.program.empty() || spec.program.front() != '/') {
    return fail(Reason::kLoadFailed, "execve " + spec.program + ": the path is not absolute.");
  }
  if (!spec.output) spec.output.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!spec.output) return fail(launch_error("open /dev/null", errno));

  auto stdin_pipe = make_pipe();
  if (!stdin_pipe) return fail(std::move(stdin_pipe).error());
  auto notify_pipe = make_pipe();
  if (!notify_pipe) return fail(std::move(notify_pipe).error());
  if (::fcntl(notify_pipe->read.get(), F_SETFL, O_NONBLOCK) != 0) {
    return fail(launch_error("fcntl(O_NONBLOCK)", errno));
  }
  const auto child_stdin = lifted(std::move(stdin_pipe->read));
  if (!child_stdin) return fail(child_stdin.error());
  const auto child_output = lifted(std::move(spec.output));
  if (!child_output) return fail(child_output.error());
  const auto child_notify = lifted(std::move(notify_pipe->write));
  if (!child_notify) return fail(child_notify.error());

  const bool below_shim = !spec.shim.empty();
  const std::string program = spec.program;
  if (below_shim) {
    spec.argv.insert(spec.argv.begin(), {spec.shim, "--", spec.program});
    spec.program = spec.shim;
  }
  const std::vector<char*> argv = c_strings(spec.argv);
  const std::vector<char*> environment = c_strings(spec.environment);
  ChildPlan plan;
  plan.program = spec.program.c_str();
  plan.argv = argv.data();
  plan.environment = environment.data();
  plan.directory = spec.directory.empty() ? "/" : spec.directory.c_str();
  plan.stdin_fd = child_stdin->get();
  plan.output_fd = child_output->get();
  plan.notify_fd = child_notify->get();
  plan.oom_score_adj = spec.oom_score_adj;
  plan.nice = spec.nice;
  plan.use_clone3 = options_.use_clone3;
  std::unique_ptr<WorkerCgroup> cgroup = make_cgroup(spec.cgroup);
  if (cgroup) plan.cgroup_fd = cgroup->fd();
  spec.reservation.reset();
  auto child = start_child(plan, options_.exec_wait);
  if (!child) return fail(std::move(child).error());
  if (below_shim) {
    if (auto runs = await_shim(notify_pipe->read.get(), program, options_.exec_wait); !runs) {
      // It ends by itself, with all that it started.
      stdin_pipe->write.reset();
      pollfd ended{child->pidfd.get(), POLLIN, 0};
      constexpr int kMostMs = 1000;
      ::poll(&ended, 1, kMostMs);
      discard_child(*child);
      return fail(std::move(runs).error());
    }
  }
  // The number is another process's now.
  std::erase(*oom_killed_, child->pid);
  if (cgroup && !child->in_cgroup && !cgroup->populated()) {
    tell_cgroup_problem("a worker could not be started in its own");
  }
  if (spec.started) spec.started(child->pid);

  const auto stat = read_stat(child->pid);
  auto watch = std::make_shared<Watch>(
      io_,
      Watch::Parts{std::move(*child), std::move(stdin_pipe->write), std::move(notify_pipe->read),
                   below_shim, std::move(cgroup), find_mark(spec.environment), options_.shim_wait,
                   options_.oom_sample},
      observer, living_, oom_killed_);
  watch->start();
  return std::make_unique<RealChild>(std::move(watch), stat ? stat->start_ticks : 0);
}

}  // namespace berth::process
