#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace berth::gateway {

// The bytes that the bodies of all requests may take until their handlers have them. The server's
// thread only.
class BodyBudget {
 public:
  explicit BodyBudget(std::uint64_t bytes) : free_(bytes) {}

  bool take(std::uint64_t bytes) {
    if (bytes > free_) return false;
    free_ -= bytes;
    return true;
  }
  void give(std::uint64_t bytes) {
    free_ += bytes;
    std::vector<std::function<void()>> waiters;
    waiters.swap(waiters_);
    for (const auto& wake : waiters) wake();
  }
  // Calls `wake` once, when something was given back.
  void wait(std::function<void()> wake) { waiters_.push_back(std::move(wake)); }
  void forget_waiters() { waiters_.clear(); }

 private:
  std::uint64_t free_;
  std::vector<std::function<void()>> waiters_;  // at most one per connection and wait
};

// What one body has taken of it.
class BodyCharge {
 public:
  explicit BodyCharge(BodyBudget& budget) : budget_(&budget) {}
  BodyCharge(const BodyCharge&) = delete;
  BodyCharge& operator=(const BodyCharge&) = delete;
  ~BodyCharge() { release(); }

  // Whether the body may have so many bytes in all.
  bool grow_to(std::uint64_t bytes) {
    if (bytes <= taken_) return true;
    // In steps, so that not every piece asks.
    const std::uint64_t wanted = (std::max(bytes, taken_ + kStep / 2) + kStep - 1) / kStep * kStep;
    if (!budget_->take(wanted - taken_)) return false;
    taken_ = wanted;
    return true;
  }
  void release() {
    if (const std::uint64_t bytes = std::exchange(taken_, 0); bytes > 0) budget_->give(bytes);
  }

 private:
  static constexpr std::uint64_t kStep = 16U << 10;

  BodyBudget* budget_;
  std::uint64_t taken_ = 0;
};

}  // namespace berth::gateway
