#include "supervisor/core/waiters.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace berth::core {

WaiterQueue::~WaiterQueue() {
  total_->count -= static_cast<std::uint32_t>(counted());
}

WaiterQueue::Push WaiterQueue::push(Ticket ticket) {
  if (counted() >= limit_) return Push::kModelFull;
  if (total_->count >= total_->limit) return Push::kTotalFull;
  queue_.push_back(ticket);
  ++total_->count;
  return Push::kQueued;
}

std::optional<Ticket> WaiterQueue::pop() {
  if (queue_.empty()) return std::nullopt;
  const Ticket first = queue_.front();
  queue_.pop_front();
  --total_->count;
  return first;
}

bool WaiterQueue::remove(Ticket ticket) {
  const bool was_here = std::erase(queue_, ticket) > 0 || detached_.erase(ticket) > 0;
  if (was_here) --total_->count;
  return was_here;
}

std::vector<Ticket> WaiterQueue::detach_all() {
  std::vector<Ticket> all = tickets();
  detached_.insert(all.begin(), all.end());
  queue_.clear();
  return all;
}

std::optional<std::uint32_t> WaiterQueue::position(Ticket ticket) const {
  const auto at = std::ranges::find(queue_, ticket);
  if (at == queue_.end()) return std::nullopt;
  return static_cast<std::uint32_t>(std::distance(queue_.begin(), at)) + 1;
}

}  // namespace berth::core
