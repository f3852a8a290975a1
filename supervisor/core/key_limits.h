#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/core/caller.h"

namespace berth::core {

// How much one key may ask for.
struct KeyRates {
  std::uint32_t requests_per_minute = 0;  // 0: no limit
  std::uint32_t concurrency = 0;          // requests that wait or run; 0: no limit

  bool operator==(const KeyRates&) const = default;
};

// The place of one request among those of its key; gives it back when it goes. Without a key it is
// empty. Any thread; may outlive the limits.
class KeyPermit {
 public:
  KeyPermit() = default;
  explicit KeyPermit(std::shared_ptr<std::atomic<std::uint32_t>> running)
      : running_(std::move(running)) {
    ++*running_;
  }
  KeyPermit(const KeyPermit&) = delete;
  KeyPermit& operator=(const KeyPermit&) = delete;
  KeyPermit(KeyPermit&& other) noexcept : running_(std::exchange(other.running_, nullptr)) {}
  KeyPermit& operator=(KeyPermit&& other) noexcept {
    KeyPermit(std::move(other)).swap(*this);
    return *this;
  }
  ~KeyPermit() {
    if (running_) --*running_;
  }

 private:
  void swap(KeyPermit& other) noexcept { running_.swap(other.running_); }

  std::shared_ptr<std::atomic<std::uint32_t>> running_;
};

// The limits of all keys: a bucket each that fills by requests_per_minute a minute and holds as
// many, and a count of what runs. Callers without a key have no limit here. One thread at a time;
// time is passed in. Bounded by the keys that are used: what has been full and idle is forgotten.
class KeyLimits {
 public:
  // Counts at once, also for keys that are in use: what runs goes on.
  void set(KeyRates rates) { rates_ = rates; }

  // Takes one request of the caller's key. Errors: kRateLimited, with what the limit is and after
  // how many seconds there is room again; a refusal takes nothing.
  Result<KeyPermit> admit(const Caller& caller, SteadyTime now);

 private:
  struct Use {
    std::shared_ptr<std::atomic<std::uint32_t>> running =
        std::make_shared<std::atomic<std::uint32_t>>(0);
    // When the bucket is full again, if nothing more is taken out of it.
    SteadyTime full{};
  };

  void forget_idle(SteadyTime now);

  KeyRates rates_;
  std::map<std::string, Use> uses_;
  std::size_t forget_at_ = 64;
};

}  // namespace berth::core
