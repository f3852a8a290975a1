#include "supervisor/device_lister.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <utility>

#include "common/errno_text.h"
#include "common/fd.h"
#include "common/text.h"
#include "supervisor/core/exit_status.h"
#include "supervisor/memory/device_list.h"

namespace berth {

// One process that lists. It stays until its process is gone, also after it has answered.
class WorkerDeviceLister::Run final : public process::ChildObserver,
                                      public std::enable_shared_from_this<Run> {
 public:
  Run(Parts& parts, std::function<void(Devices)> done) : parts_(parts), done_(std::move(done)) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() override = default;

  void begin() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      return fail_later("pipe: " + errno_text(errno));
    }
    output_ = UniqueFd(ends[0]);
    process::LaunchSpec spec;
    spec.output = UniqueFd(ends[1]);
    if (::fcntl(output_.get(), F_SETFL, O_NONBLOCK) != 0) {
      return fail_later("fcntl: " + errno_text(errno));
    }
    spec.program = parts_.program;
    spec.argv = {parts_.program, "--devices"};
    spec.environment = parts_.environment;
    auto child = parts_.launcher.launch(std::move(spec), *this);
    if (!child) return fail_later(child.error().message);
    child_ = *std::move(child);
    deadline_ = parts_.clock.sleep_for(kDeadline, [this] { give_up(); });
    wait();
  }

  [[nodiscard]] bool over() const { return !child_ && !done_; }

  void on_notify(std::string_view /*line*/) override {}

  void on_exit(core::ExitStatus status) override {
    deadline_.reset();
    readable_.reset();
    read();
    if (done_) {
      const bool good = status == core::ExitStatus(core::Exited{0});
      if (good) {
        answer(memory::find_device_list(text_));
      } else {
        answer(fail(Reason::kInternal,
                    "It ended with " + core::to_string(status) + ". " + end_of(text_)));
      }
    }
    // Its own code returns from here.
    parts_.clock.post([self = shared_from_this()] { self->child_.reset(); });
  }

 private:
  static std::string end_of(const std::string& text) {
    constexpr std::size_t kShown = 300;
    const std::size_t from = text.size() - std::min(text.size(), kShown);
    const std::string end = printable_line(std::string_view(text).substr(from), kShown);
    return end.empty() ? "It printed nothing." : "The end of what it printed: " + end;
  }

  void fail_later(std::string problem) {
    parts_.clock.post([weak = weak_from_this(), problem = std::move(problem)] {
      if (const auto self = weak.lock()) self->answer(fail(Reason::kInternal, problem));
    });
  }

  void answer(Devices devices) {
    if (const auto done = std::exchange(done_, nullptr)) done(std::move(devices));
  }

  void wait() {
    readable_ = parts_.on_readable(output_.get(), [this] {
      if (read()) wait();
    });
  }

  // False: the end, or enough.
  bool read() {
    std::array<char, 4096> buffer{};
    while (text_.size() < kMostOutput) {
      const ssize_t count = ::read(output_.get(), buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return true;
      if (count <= 0) return false;
      text_.append(buffer.data(), static_cast<std::size_t>(count));
    }
    child_->signal_group(SIGKILL);
    return false;
  }

  void give_up() {
    if (child_) child_->signal_group(SIGKILL);
    answer(fail(Reason::kDeadline, "It did not end within 5 s and was killed. " + end_of(text_)));
  }

  Parts& parts_;
  std::function<void(Devices)> done_;
  UniqueFd output_;
  std::string text_;
  std::unique_ptr<process::ChildProcess> child_;
  Timer readable_;
  Timer deadline_;
};

WorkerDeviceLister::WorkerDeviceLister(Parts parts) : parts_(std::move(parts)) {}
WorkerDeviceLister::~WorkerDeviceLister() = default;

void WorkerDeviceLister::list(std::function<void(Devices)> done) {
  if (run_ && !run_->over()) {
    parts_.clock.post([weak = std::weak_ptr(run_), done = std::move(done)] {
      if (!weak.expired()) done(fail(Reason::kInternal, "An earlier one is not gone yet."));
    });
    return;
  }
  run_ = std::make_shared<Run>(parts_, std::move(done));
  run_->begin();
}

}  // namespace berth
