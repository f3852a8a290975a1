#include "supervisor/worker_question.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "common/errno_text.h"
#include "common/text.h"

namespace berth {
namespace {

std::string end_of(const std::string& text) {
  constexpr std::size_t kShown = 300;
  const std::size_t from = text.size() - std::min(text.size(), kShown);
  const std::string end = printable_line(std::string_view(text).substr(from), kShown);
  return end.empty() ? "It printed nothing." : "The end of what it printed: " + end;
}

}  // namespace

WorkerQuestion::WorkerQuestion(const Parts& parts, std::vector<std::string> arguments, Answer done)
    : parts_(parts), arguments_(std::move(arguments)), done_(std::move(done)) {}
WorkerQuestion::~WorkerQuestion() = default;

void WorkerQuestion::begin() {
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
  spec.argv = arguments_;
  spec.argv.insert(spec.argv.begin(), parts_.program);
  spec.environment = parts_.environment;
  auto child = parts_.launcher.launch(std::move(spec), *this);
  if (!child) return fail_later(child.error().message);
  child_ = *std::move(child);
  runs_ = true;
  deadline_ = parts_.clock.sleep_for(kDeadline, [this] { give_up(); });
  wait();
}

void WorkerQuestion::on_exit(core::ExitStatus status) {
  deadline_.reset();
  readable_.reset();
  read();
  output_.reset();
  runs_ = false;
  // Its own code returns from here.
  parts_.clock.post([self = shared_from_this()] { self->child_.reset(); });
  if (done_) {
    const bool good = status == core::ExitStatus(core::Exited{0});
    if (good) {
      answer(text_);
    } else {
      answer(fail(Reason::kInternal,
                  "It ended with " + core::to_string(status) + ". " + end_of(text_)));
    }
  }
}

void WorkerQuestion::fail_later(std::string problem) {
  parts_.clock.post([weak = weak_from_this(), problem = std::move(problem)] {
    if (const auto self = weak.lock()) self->answer(fail(Reason::kInternal, problem));
  });
}

void WorkerQuestion::answer(Result<std::string> text) {
  if (const auto done = std::exchange(done_, nullptr)) done(std::move(text));
}

void WorkerQuestion::wait() {
  readable_ = parts_.on_readable(output_.get(), [this] {
    if (read()) wait();
  });
}

// False: the end, or enough.
bool WorkerQuestion::read() {
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

void WorkerQuestion::give_up() {
  if (child_) child_->signal_group(SIGKILL);
  answer(fail(Reason::kDeadline, "It did not end within 5 s and was killed. " + end_of(text_)));
}

}  // namespace berth
