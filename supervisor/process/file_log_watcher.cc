#include "supervisor/process/file_log_watcher.h"

#include <chrono>
#include <optional>
#include <utility>

#include "supervisor/process/log_judge.h"

namespace berth::process {
namespace {

constexpr Duration kPollPeriod = std::chrono::milliseconds(500);

}  // namespace

// One step at a time: either the pool has the judge, or the watch waits for something to happen.
class FileLogWatcher::Watch final : public LogWatch {
 public:
  Watch(const Parts& parts, std::shared_ptr<Paths> read, LogJudge::Options options,
        OnVerdict on_verdict)
      : parts_(parts),
        model_(options.place.model),
        read_(std::move(read)),
        reads_(read_->insert(options.place.path)),
        shared_(std::make_shared<Shared>(std::move(options), this)),
        on_verdict_(std::move(on_verdict)) {
    take_step();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() override {
    stop_waiting();
    stop_reading();
    shared_->watch = nullptr;
    if (!working_) dismiss(parts_.run_blocking, *shared_);
  }

  void finish(OnEnd done) override {
    done_ = std::move(done);
    if (!working_) take_step();
  }

 private:
  // The pool's, while a step is out; `watch` is the core strand's.
  struct Shared {
    Shared(LogJudge::Options options, Watch* owner)
        : judge(std::make_shared<LogJudge>(std::move(options))), watch(owner) {}
    std::shared_ptr<LogJudge> judge;
    Watch* watch;  // null: dropped
  };

  // Lets go of the files on the pool: to end an inotify watch takes the kernel some 20 ms.
  static void dismiss(const RunBlocking& run_blocking, Shared& shared) {
    run_blocking([judge = std::exchange(shared.judge, nullptr)]() mutable { judge.reset(); });
  }

  void take_step() {
    stop_waiting();
    working_ = true;
    const bool finishing = done_ != nullptr;
    parts_.run_blocking([parts = parts_, model = model_, shared = shared_, finishing] {
      LogJudge& judge = *shared->judge;
      parts.clock.post([parts, model, shared, finishing,
                        step = finishing ? judge.finish(parts.clock) : judge.look(parts.clock)] {
        if (step.cut.cut && parts.on_cut) parts.on_cut(model, step.cut.size_before);
        if (!step.cut_problem.empty() && parts.on_uncut) parts.on_uncut(model, step.cut_problem);
        if (shared->watch != nullptr) {
          shared->watch->on_step(step, finishing);
        } else {
          dismiss(parts.run_blocking, *shared);
        }
      });
    });
  }

  void on_step(const LogJudge::Step& step, bool finishing) {
    working_ = false;
    if (done_ && (step.verdict || told_ || (finishing && !step.more))) {
      stop_reading();
      const OnEnd done = std::exchange(done_, nullptr);
      done(step.verdict);
    } else if (step.verdict) {
      told_ = true;
      stop_reading();
      const OnVerdict on_verdict = std::exchange(on_verdict_, nullptr);
      on_verdict(*step.verdict);
    } else if (done_ || step.more) {
      take_step();
    } else if (!told_) {
      wait(step);
    }
  }

  void wait(const LogJudge::Step& step) {
    if (step.wait_fd >= 0) {
      readable_ = parts_.on_readable(step.wait_fd, [this] { take_step(); });
    } else {
      poll_ = parts_.clock.sleep_for(kPollPeriod, [this] { take_step(); });
    }
    if (step.hold_until) {
      quiet_ = parts_.clock.sleep_until(*step.hold_until, [this] { take_step(); });
    }
  }

  void stop_waiting() {
    readable_.reset();
    poll_.reset();
    quiet_.reset();
  }

  void stop_reading() {
    if (reads_ != read_->end()) read_->erase(std::exchange(reads_, read_->end()));
  }

  const Parts parts_;
  const std::string model_;
  const std::shared_ptr<Paths> read_;
  Paths::iterator reads_;  // the end: no more
  const std::shared_ptr<Shared> shared_;
  OnVerdict on_verdict_;
  OnEnd done_;
  bool working_ = false;
  bool told_ = false;  // the verdict was given
  Timer readable_;
  Timer poll_;
  Timer quiet_;
};

FileLogWatcher::FileLogWatcher(Parts parts)
    : parts_(std::move(parts)), read_(std::make_shared<Paths>()) {}

bool FileLogWatcher::reads(const std::string& path) const {
  return read_->contains(path);
}

std::unique_ptr<LogWatch> FileLogWatcher::watch(LogPlace place,
                                                std::vector<std::string> fatal_exceptions,
                                                OnVerdict on_verdict) {
  return std::make_unique<Watch>(
      parts_, read_,
      LogJudge::Options{std::move(place), std::move(fatal_exceptions), parts_.use_inotify,
                        parts_.cut_over, parts_.cut_keeps},
      std::move(on_verdict));
}

}  // namespace berth::process
