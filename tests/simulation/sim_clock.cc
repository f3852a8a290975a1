#include "tests/simulation/sim_clock.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/clock.h"
#include "tests/simulation/random.h"

namespace berth::sim {
namespace {

constexpr std::string_view kCore = "core";
// More callbacks at one instant than any scenario has: a livelock.
constexpr int kLivelock = 1'000'000;
constexpr std::chrono::milliseconds kEpoch{1'750'000'000'000};

}  // namespace

struct SimClock::State {
  using Key = std::pair<SteadyTime, std::uint64_t>;

  explicit State(std::uint64_t seed) : random(seed) {}

  Random random;
  SteadyTime now{std::chrono::seconds(1000)};
  Duration slept{};  // the boot clock's advance over the steady one
  std::uint64_t next_id = 1;
  std::uint64_t fingerprint = 0;
  std::map<Key, Callback> timers;
  std::map<std::string, std::deque<Callback>, std::less<>> posted;
  std::function<void()> hook;
  bool stopped = false;

  [[nodiscard]] std::uint64_t due() const {
    const auto end = timers.upper_bound({now, UINT64_MAX});
    return static_cast<std::uint64_t>(std::distance(timers.begin(), end));
  }
};

class SimClock::SimTimer : public Timer::Impl {
 public:
  SimTimer(std::shared_ptr<State> state, State::Key key) : state_(std::move(state)), key_(key) {}
  SimTimer(const SimTimer&) = delete;
  SimTimer& operator=(const SimTimer&) = delete;
  ~SimTimer() override { state_->timers.erase(key_); }

 private:
  const std::shared_ptr<State> state_;
  const State::Key key_;
};

SimClock::SimClock(std::uint64_t seed) : state_(std::make_shared<State>(seed)) {}

SimClock::~SimClock() {
  // Callbacks may hold timers, which hold the state; and what ends with them may post once more.
  state_->hook = nullptr;
  while (!state_->posted.empty() || !state_->timers.empty()) {
    std::exchange(state_->posted, {}).clear();
    std::exchange(state_->timers, {}).clear();
  }
}

SteadyTime SimClock::now() const {
  return state_->now;
}
BootTime SimClock::boot_now() const {
  return BootTime(state_->now.time_since_epoch() + state_->slept);
}
WallTime SimClock::wall_now() const {
  return WallTime(kEpoch + std::chrono::duration_cast<std::chrono::milliseconds>(
                               state_->now.time_since_epoch() + state_->slept));
}

Timer SimClock::sleep_until(SteadyTime when, Callback callback) {
  const State::Key key{when, state_->next_id++};
  state_->timers.emplace(key, std::move(callback));
  return Timer(std::make_unique<SimTimer>(state_, key));
}

void SimClock::post(Callback callback) {
  post_from(std::string(kCore), std::move(callback));
}

void SimClock::post_from(const std::string& source, Callback callback) {
  state_->posted[source].push_back(std::move(callback));
}

bool SimClock::run_one() {
  const std::shared_ptr<State> state = state_;
  if (state->stopped) return false;
  const std::uint64_t due = state->due();
  const std::uint64_t choices = due + state->posted.size();
  if (choices == 0) return false;
  const std::uint64_t chosen = state->random.below(choices);
  Callback callback;
  if (chosen < due) {
    const auto at = std::next(state->timers.begin(), static_cast<std::ptrdiff_t>(chosen));
    callback = std::move(at->second);
    state->timers.erase(at);
  } else {
    const auto at = std::next(state->posted.begin(), static_cast<std::ptrdiff_t>(chosen - due));
    callback = std::move(at->second.front());
    at->second.pop_front();
    if (at->second.empty()) state->posted.erase(at);
  }
  state->fingerprint = (state->fingerprint ^ (chosen + choices * 31)) * 0x100000001B3ULL +
                       static_cast<std::uint64_t>(state->now.time_since_epoch().count());
  callback();
  callback = nullptr;
  if (state->hook) state->hook();
  return true;
}

void SimClock::settle() {
  for (int ran = 0; run_one(); ++ran) {
    if (ran > kLivelock) {
      std::fputs("simulation: callbacks without end at one instant\n", stderr);
      std::abort();
    }
  }
}

void SimClock::advance(Duration duration) {
  const SteadyTime end = state_->now + duration;
  settle();
  while (state_->now < end && !state_->stopped) {
    jump(end);
    settle();
  }
}

bool SimClock::run_until(const std::function<bool()>& condition, Duration at_most) {
  const SteadyTime end = state_->now + at_most;
  while (!condition()) {
    if (run_one()) continue;
    if (state_->now >= end) return false;
    jump(end);
  }
  return true;
}

void SimClock::jump(SteadyTime limit) {
  SteadyTime next = limit;
  if (!state_->timers.empty()) next = std::min(next, state_->timers.begin()->first.first);
  state_->now = std::max(state_->now, next);
}

void SimClock::suspend(Duration duration) {
  state_->slept += duration;
}

void SimClock::stop() {
  state_->stopped = true;
}

bool SimClock::idle() const {
  return state_->due() == 0 && state_->posted.empty();
}

std::optional<SteadyTime> SimClock::next_timer() const {
  if (state_->timers.empty()) return std::nullopt;
  return state_->timers.begin()->first.first;
}

void SimClock::on_step(std::function<void()> hook) {
  state_->hook = std::move(hook);
}

std::uint64_t SimClock::fingerprint() const {
  return state_->fingerprint;
}

}  // namespace berth::sim
