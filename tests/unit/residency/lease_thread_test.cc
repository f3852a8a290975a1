#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "supervisor/residency/residency.h"
#include "tests/unit/residency/harness.h"

namespace berth::residency {
namespace {

// A simulated clock that other threads may post to; their posts wait until they are taken in.
class SharedClock : public Clock {
 public:
  explicit SharedClock(sim::SimClock& clock) : clock_(clock) {}

  [[nodiscard]] SteadyTime now() const override { return clock_.now(); }
  [[nodiscard]] BootTime boot_now() const override { return clock_.boot_now(); }
  [[nodiscard]] WallTime wall_now() const override { return clock_.wall_now(); }
  [[nodiscard]] Timer sleep_until(SteadyTime when, Callback callback) override {
    return clock_.sleep_until(when, std::move(callback));
  }
  void post(Callback callback) override {
    if (std::this_thread::get_id() == strand_) {
      clock_.post(std::move(callback));
      return;
    }
    const std::lock_guard lock(mutex_);
    from_outside_.push_back(std::move(callback));
  }
  void take_in() {
    const std::lock_guard lock(mutex_);
    for (Callback& callback : std::exchange(from_outside_, {})) clock_.post(std::move(callback));
  }

 private:
  sim::SimClock& clock_;
  const std::thread::id strand_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::vector<Callback> from_outside_;
};

TEST(LeaseThreads, ALeaseMayBeDroppedOnAnyThread) {
  sim::SimWorld world;
  SharedClock clock(world.clock);
  sim::WorkerScript wide;
  wide.sequences = 8;
  world.workers.set_script([wide](const std::string& /*model*/) { return wide; });
  Environment simulated = world.environment();
  Residency residency(Environment{clock, simulated.ids, simulated.launcher, simulated.connector,
                                  simulated.store, simulated.events, simulated.prepare_launch,
                                  simulated.log_tail});
  const auto demo = sim::make_model("demo");
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<TestClient>());
    clients.back()->claim = residency.acquire(demo, RequestClass::kForeground,
                                              clock.now() + minutes(5), *clients.back());
  }
  world.clock.advance(seconds(2));
  EXPECT_EQ(residency.instances().at(0).active, 8U);
  std::vector<std::thread> threads;
  threads.reserve(clients.size());
  for (const auto& client : clients) {
    threads.emplace_back([lease = std::move(client->lease)]() mutable { lease = {}; });
  }
  for (std::thread& thread : threads) thread.join();
  clock.take_in();
  world.clock.settle();
  EXPECT_EQ(residency.instances().at(0).active, 0U);
  EXPECT_EQ(residency.instances().at(0).requests_served, 8U);
}

}  // namespace
}  // namespace berth::residency
