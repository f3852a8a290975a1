#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <vector>

namespace berth::core {

// Names one waiter; never used again.
using Ticket = std::uint64_t;

// How many wait in all, over every model (M13). Shared by all queues; outlives them.
struct WaitingTotal {
  std::uint32_t limit = 2048;
  std::uint32_t count = 0;
};

// Those who wait for one model, first come first served, bounded per model and in all. A waiter
// whose load failed is *detached*: it waits for the failure's evidence, has no position any more,
// and still counts. Pure.
class WaiterQueue {
 public:
  enum class Push : std::uint8_t { kQueued, kModelFull, kTotalFull };

  // `limit`: waiters of this model, detached ones included.
  WaiterQueue(std::uint32_t limit, WaitingTotal& total) : limit_(limit), total_(&total) {}
  WaiterQueue(const WaiterQueue&) = delete;
  WaiterQueue& operator=(const WaiterQueue&) = delete;
  ~WaiterQueue();

  [[nodiscard]] Push push(Ticket ticket);
  // The first in the queue, which leaves it.
  std::optional<Ticket> pop();
  // A waiter leaves, wherever it is; whether it was there.
  bool remove(Ticket ticket);
  // Everyone who is in the queue, in its order; all become detached.
  std::vector<Ticket> detach_all();

  // 1 = next; absent: detached or not here.
  [[nodiscard]] std::optional<std::uint32_t> position(Ticket ticket) const;
  // In the queue, in its order.
  [[nodiscard]] std::vector<Ticket> tickets() const { return {queue_.begin(), queue_.end()}; }
  [[nodiscard]] bool empty() const { return queue_.empty(); }
  // In the queue, without those who are detached.
  [[nodiscard]] std::size_t size() const { return queue_.size(); }
  // All that count for the bound.
  [[nodiscard]] std::size_t counted() const { return queue_.size() + detached_.size(); }

 private:
  std::uint32_t limit_;
  WaitingTotal* total_;
  std::list<Ticket> queue_;
  std::set<Ticket> detached_;
};

}  // namespace berth::core
