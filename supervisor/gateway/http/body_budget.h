#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace berth::gateway {

// The bytes that the bodies of all requests may take until their handlers have them. What came is
// counted, not what was announced. Small bodies have a part of their own, so that large ones keep
// none of them out; and no peer gets more than half of either part. The server's thread only.
class BodyBudget {
 public:
  // Most bytes of a small body.
  static constexpr std::uint64_t kSmallBody = 256U << 10;

  enum class Part : std::uint8_t { kLarge, kSmall };

  explicit BodyBudget(std::uint64_t large, std::uint64_t small = 0)
      : large_{large, large, {}}, small_{small, small, {}} {}

  bool take(Part part, const std::string& peer, std::uint64_t bytes) {
    Purse& purse = of(part);
    if (bytes > purse.free) return false;
    std::uint64_t& held = purse.held[peer];
    const bool fits = held + bytes <= purse.all / 2;
    if (fits) {
      held += bytes;
      purse.free -= bytes;
    }
    if (held == 0) purse.held.erase(peer);
    return fits;
  }
  void give(Part part, const std::string& peer, std::uint64_t bytes) {
    Purse& purse = of(part);
    purse.free += bytes;
    const auto held = purse.held.find(peer);
    if (held != purse.held.end() && (held->second -= bytes) == 0) purse.held.erase(held);
    std::vector<std::function<void()>> waiters;
    waiters.swap(waiters_);
    for (const auto& wake : waiters) wake();
  }
  // Calls `wake` once, when something was given back.
  void wait(std::function<void()> wake) { waiters_.push_back(std::move(wake)); }
  void forget_waiters() { waiters_.clear(); }
  // Whether nobody holds anything.
  [[nodiscard]] bool untouched() const {
    return large_.free == large_.all && small_.free == small_.all;
  }

 private:
  struct Purse {
    std::uint64_t all;
    std::uint64_t free;
    std::unordered_map<std::string, std::uint64_t> held;  // by peer; none that holds nothing
  };

  Purse& of(Part part) { return part == Part::kLarge ? large_ : small_; }

  Purse large_;
  Purse small_;
  std::vector<std::function<void()>> waiters_;  // at most one per connection and wait
};

// What one body has taken of it.
class BodyCharge {
 public:
  BodyCharge(BodyBudget& budget, std::string peer) : budget_(&budget), peer_(std::move(peer)) {}
  BodyCharge(const BodyCharge&) = delete;
  BodyCharge& operator=(const BodyCharge&) = delete;
  ~BodyCharge() { release(); }

  // Whether the body may have so many bytes in all.
  bool grow_to(std::uint64_t bytes) {
    if (bytes <= taken_) return true;
    // In steps, so that not every piece asks.
    const std::uint64_t wanted = (std::max(bytes, taken_ + kStep / 2) + kStep - 1) / kStep * kStep;
    if (part_ == Part::kSmall && wanted <= BodyBudget::kSmallBody &&
        budget_->take(Part::kSmall, peer_, wanted - taken_)) {
      taken_ = wanted;
      return true;
    }
    const std::uint64_t had = part_ == Part::kLarge ? taken_ : 0;
    if (!budget_->take(Part::kLarge, peer_, wanted - had)) return false;
    if (part_ == Part::kSmall) release();
    part_ = Part::kLarge;
    taken_ = wanted;
    return true;
  }
  void release() {
    if (const std::uint64_t bytes = std::exchange(taken_, 0); bytes > 0) {
      budget_->give(part_, peer_, bytes);
    }
  }

 private:
  using Part = BodyBudget::Part;
  static constexpr std::uint64_t kStep = 16U << 10;

  BodyBudget* budget_;
  std::string peer_;
  Part part_ = Part::kSmall;
  std::uint64_t taken_ = 0;
};

}  // namespace berth::gateway
