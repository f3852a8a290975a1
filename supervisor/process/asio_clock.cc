#include "supervisor/process/asio_clock.h"

#include <time.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <utility>

namespace berth::process {
namespace {

Duration read_clock(clockid_t id) {
  timespec time{};
  ::clock_gettime(id, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// A cancelled wait may have its completion queued already, so that cancelling alone is not enough:
// the callback itself is taken away.
struct Sleep {
  explicit Sleep(boost::asio::io_context& io) : timer(io) {}
  boost::asio::steady_timer timer;
  Clock::Callback callback;
};

class SleepHandle : public Timer::Impl {
 public:
  explicit SleepHandle(std::shared_ptr<Sleep> sleep) : sleep_(std::move(sleep)) {}
  SleepHandle(const SleepHandle&) = delete;
  SleepHandle& operator=(const SleepHandle&) = delete;
  ~SleepHandle() override {
    sleep_->callback = nullptr;
    sleep_->timer.cancel();
  }

 private:
  std::shared_ptr<Sleep> sleep_;
};

}  // namespace

SteadyTime AsioClock::now() const {
  return SteadyTime(read_clock(CLOCK_MONOTONIC));
}

BootTime AsioClock::boot_now() const {
  return BootTime(read_clock(CLOCK_BOOTTIME));
}

WallTime AsioClock::wall_now() const {
  return WallTime(std::chrono::floor<std::chrono::milliseconds>(read_clock(CLOCK_REALTIME)));
}

Timer AsioClock::sleep_until(SteadyTime when, Callback callback) {
  auto sleep = std::make_shared<Sleep>(io_);
  sleep->callback = std::move(callback);
  // std::chrono::steady_clock is CLOCK_MONOTONIC too.
  sleep->timer.expires_at(std::chrono::steady_clock::time_point(when.time_since_epoch()));
  sleep->timer.async_wait([sleep](const boost::system::error_code& error) {
    if (error || !sleep->callback) return;
    const Callback due = std::exchange(sleep->callback, nullptr);
    due();
  });
  return Timer(std::make_unique<SleepHandle>(std::move(sleep)));
}

void AsioClock::post(Callback callback) {
  boost::asio::post(io_, std::move(callback));
}

}  // namespace berth::process
