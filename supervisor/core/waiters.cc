#include "supervisor/core/waiters.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace berth::core {
namespace {

// How many are before `at`; quick for the first and for the last ones.
std::size_t place_in(const std::list<Ticket>& line, std::list<Ticket>::const_iterator at) {
  auto back = at;
  for (std::size_t steps = 0;; ++steps) {
    if (back == line.begin()) return steps;
    if (at == line.end()) return line.size() - steps;
    --back;
    ++at;
  }
}

}  // namespace

WaiterQueue::~WaiterQueue() {
  total_->count -= static_cast<std::uint32_t>(counted());
}

WaiterQueue::Push WaiterQueue::push(Ticket ticket, std::string_view tenant, WaiterKind kind) {
  if (counted() >= limit_) return Push::kModelFull;
  if (total_->count >= total_->limit) return Push::kTotalFull;
  ++total_->count;
  if (kind == WaiterKind::kIdleWork) {
    idle_.push_back(ticket);
    places_.emplace(ticket, Place{turns_.end(), std::prev(idle_.end())});
    return Push::kQueued;
  }
  auto line = lines_.find(tenant);
  if (line == lines_.end()) {
    turns_.push_back({std::string(tenant), {}});
    line = lines_.emplace(tenant, std::prev(turns_.end())).first;
  }
  std::list<Ticket>& tickets = line->second->tickets;
  tickets.push_back(ticket);
  places_.emplace(ticket, Place{line->second, std::prev(tickets.end())});
  return Push::kQueued;
}

std::optional<Ticket> WaiterQueue::front() const {
  if (!turns_.empty()) return turns_.front().tickets.front();
  if (!idle_.empty()) return idle_.front();
  return std::nullopt;
}

std::optional<Ticket> WaiterQueue::pop() {
  const std::optional<Ticket> first = front();
  if (!first) return std::nullopt;
  const bool others = !turns_.empty() && turns_.front().tickets.size() > 1;
  // Its tenant has had its turn.
  if (others) turns_.splice(turns_.end(), turns_, turns_.begin());
  take_out(places_.find(*first));
  return first;
}

void WaiterQueue::take_out(std::unordered_map<Ticket, Place>::iterator place) {
  const auto [line, at] = place->second;
  places_.erase(place);
  --total_->count;
  if (line == turns_.end()) {
    idle_.erase(at);
    return;
  }
  line->tickets.erase(at);
  if (!line->tickets.empty()) return;
  lines_.erase(line->tenant);
  turns_.erase(line);
}

bool WaiterQueue::remove(Ticket ticket) {
  if (const auto place = places_.find(ticket); place != places_.end()) {
    take_out(place);
    return true;
  }
  if (detached_.erase(ticket) == 0) return false;
  --total_->count;
  return true;
}

std::vector<Ticket> WaiterQueue::detach_all() {
  std::vector<Ticket> all = tickets();
  detached_.insert(all.begin(), all.end());
  places_.clear();
  lines_.clear();
  turns_.clear();
  idle_.clear();
  return all;
}

std::vector<Ticket> WaiterQueue::tickets() const {
  std::vector<Ticket> all;
  all.reserve(places_.size());
  std::vector<std::pair<std::list<Ticket>::const_iterator, std::list<Ticket>::const_iterator>> left;
  for (const Line& line : turns_) left.emplace_back(line.tickets.begin(), line.tickets.end());
  while (!left.empty()) {
    for (auto& [next, end] : left) all.push_back(*next++);
    std::erase_if(left, [](const auto& line) { return line.first == line.second; });
  }
  all.insert(all.end(), idle_.begin(), idle_.end());
  return all;
}

std::optional<std::uint32_t> WaiterQueue::position(Ticket ticket) const {
  const auto place = places_.find(ticket);
  if (place == places_.end()) return std::nullopt;
  const auto [own, at] = place->second;
  if (own == turns_.end()) {
    return static_cast<std::uint32_t>(clients() + place_in(idle_, at) + 1);
  }
  const std::size_t in_line = place_in(own->tickets, at);
  std::size_t before = in_line;
  bool earlier = true;  // their turn comes before its own
  for (auto line = turns_.begin(); line != turns_.end(); ++line) {
    if (line == own) {
      earlier = false;
      continue;
    }
    before += std::min(line->tickets.size(), in_line + (earlier ? 1 : 0));
  }
  return static_cast<std::uint32_t>(before + 1);
}

}  // namespace berth::core
