#include "supervisor/memory/device_probe.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "common/units.h"
#include "supervisor/memory/nvml.h"

namespace berth::memory {

// Who waits for the read that is out. Core strand.
struct ThreadedDeviceProbe::Waiting {
  std::uint64_t asked = 0;  // the read that is out; its answer carries this number
  bool out = false;
  SteadyTime since{};
  std::vector<std::function<void(Readings)>> done;
  Timer timer;

  void answer(const Readings& readings) {
    timer.reset();
    for (const auto& one : std::exchange(done, {})) one(readings);
  }
};

// The thread that may hang. It and the object that asks it own this together.
class ThreadedDeviceProbe::Thread : public std::enable_shared_from_this<Thread> {
 public:
  explicit Thread(std::function<Result<Read>()> open) : open_(std::move(open)) {}

  // Begins a read, which answers from the thread. False: there is no thread to be had.
  bool ask(std::function<void(Readings)> answer) {
    const std::lock_guard lock(mutex_);
    if (!runs_) {
      try {
        std::thread([self = shared_from_this()] { self->run(); }).detach();
      } catch (const std::system_error&) {
        return false;
      }
      runs_ = true;
    }
    answer_ = std::move(answer);
    changed_.notify_one();
    return true;
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_one();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!stopped_) {
      if (!answer_) {
        changed_.wait(lock);
        continue;
      }
      const auto answer = std::exchange(answer_, nullptr);
      lock.unlock();
      answer(look());
      lock.lock();
    }
  }

  Readings look() {
    if (!read_) {
      Result<Read> opened = open_();
      if (!opened) return fail(opened.error());
      read_ = std::move(*opened);
    }
    Readings readings = read_();
    // Perhaps its driver was replaced.
    if (!readings) read_ = nullptr;
    return readings;
  }

  const std::function<Result<Read>()> open_;
  Read read_;  // the thread's
  std::mutex mutex_;
  std::condition_variable changed_;
  bool runs_ = false;
  bool stopped_ = false;
  std::function<void(Readings)> answer_;
};

ThreadedDeviceProbe::ThreadedDeviceProbe(Clock& clock, std::function<Result<Read>()> open,
                                         Duration deadline)
    : clock_(clock),
      deadline_(deadline),
      thread_(std::make_shared<Thread>(std::move(open))),
      waiting_(std::make_shared<Waiting>()) {}

ThreadedDeviceProbe::~ThreadedDeviceProbe() {
  thread_->stop();
}

void ThreadedDeviceProbe::read(std::function<void(Readings)> done) {
  const SteadyTime now = clock_.now();
  const auto refuse = [&](Error error) {
    clock_.post([weak = std::weak_ptr<Waiting>(waiting_), done = std::move(done),
                 error = std::move(error)] {
      if (!weak.expired()) done(fail(error));
    });
  };
  if (waiting_->out && waiting_->done.empty()) {
    return refuse({Reason::kDeadline,
                   "The driver of the devices has not answered for " +
                       format_duration_human(std::chrono::duration_cast<std::chrono::milliseconds>(
                           now - waiting_->since)) +
                       '.'});
  }
  if (!waiting_->out) {
    const std::uint64_t asked = waiting_->asked + 1;
    const bool began = thread_->ask(
        [&clock = clock_, weak = std::weak_ptr<Waiting>(waiting_), asked](Readings readings) {
          // The clock outlives whoever asked.
          if (weak.expired()) return;
          clock.post([weak, asked, readings = std::move(readings)] {
            const auto waiting = weak.lock();
            if (!waiting || waiting->asked != asked) return;
            waiting->out = false;
            waiting->answer(readings);
          });
        });
    if (!began) return refuse({Reason::kInternal, "There is no thread to look at the devices."});
    waiting_->asked = asked;
    waiting_->out = true;
    waiting_->since = now;
    waiting_->timer = clock_.sleep_for(deadline_, [this, asked] { give_up(asked); });
  }
  waiting_->done.push_back(std::move(done));
}

void ThreadedDeviceProbe::give_up(std::uint64_t asked) {
  if (waiting_->asked != asked) return;
  waiting_->answer(fail(Reason::kDeadline, "The driver of the devices does not answer."));
}

std::unique_ptr<DeviceProbe> make_nvml_probe(Clock& clock) {
  const auto open = []() -> Result<ThreadedDeviceProbe::Read> {
    Result<std::unique_ptr<Nvml>> nvml = Nvml::open();
    if (!nvml) return fail(nvml.error());
    return [shared = std::shared_ptr<const Nvml>(std::move(*nvml))] { return shared->read(); };
  };
  return std::make_unique<ThreadedDeviceProbe>(clock, open);
}

}  // namespace berth::memory
