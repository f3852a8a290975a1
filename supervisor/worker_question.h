#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/fd.h"
#include "common/result.h"
#include "supervisor/core/exit_status.h"
#include "supervisor/process/async.h"
#include "supervisor/process/launcher.h"

namespace berth {

// berth-worker, asked something that it prints: one process, which is gone before the answer,
// unless it cannot be killed. It stays until its process is gone, also after it has answered; no
// answer comes after its end. Core strand.
class WorkerQuestion final : public process::ChildObserver,
                             public std::enable_shared_from_this<WorkerQuestion> {
 public:
  static constexpr Duration kDeadline = std::chrono::seconds(5);
  static constexpr std::size_t kMostOutput = std::size_t{256} << 10U;

  struct Parts {
    Clock& clock;
    process::Launcher& launcher;
    process::OnReadable on_readable;
    std::string program;                   // absolute path of berth-worker
    std::vector<std::string> environment;  // its whole one
  };
  // What it printed, on both outputs. Errors: kDeadline, kInternal with what went wrong.
  using Answer = std::function<void(Result<std::string>)>;

  // `done` once, never from within begin(). `parts` outlives it.
  WorkerQuestion(const Parts& parts, std::vector<std::string> arguments, Answer done);
  WorkerQuestion(const WorkerQuestion&) = delete;
  WorkerQuestion& operator=(const WorkerQuestion&) = delete;
  ~WorkerQuestion() override;

  // Once.
  void begin();
  // It has answered, and its process is gone; true within an answer that its exit brought.
  [[nodiscard]] bool over() const { return !runs_ && !done_; }

  void on_notify(std::string_view /*line*/) override {}
  void on_exit(core::ExitStatus status) override;

 private:
  void fail_later(std::string problem);
  void answer(Result<std::string> text);
  void wait();
  bool read();
  void give_up();

  const Parts& parts_;
  const std::vector<std::string> arguments_;
  Answer done_;
  UniqueFd output_;
  std::string text_;
  std::unique_ptr<process::ChildProcess> child_;
  bool runs_ = false;  // its process
  Timer readable_;
  Timer deadline_;
};

}  // namespace berth
