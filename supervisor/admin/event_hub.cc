#include "supervisor/admin/event_hub.h"

#include <utility>

namespace berth::admin {

void EventHub::emit(Event event) {
  const std::lock_guard lock(mutex_);
  event.sequence = ++sequence_;
  event.time = clock_.wall_now();
  for (const Outlet& outlet : outlets_) outlet(event);
  for (const auto& [id, callback] : subscribers_) callback(event);
  kept_.push_back(std::move(event));
  if (kept_.size() > kKept) kept_.pop_front();
}

std::unique_ptr<EventHub::Subscription> EventHub::subscribe(
    std::uint64_t after_sequence, bool watch, std::function<void(const Event&)> callback) {
  const std::lock_guard lock(mutex_);
  for (const Event& event : kept_) {
    if (event.sequence > after_sequence) callback(event);
  }
  if (!watch) return nullptr;
  const std::uint64_t id = next_subscriber_++;
  subscribers_.emplace(id, std::move(callback));
  return std::make_unique<Subscription>(*this, id);
}

EventHub::Subscription::~Subscription() {
  const std::lock_guard lock(hub_.mutex_);
  hub_.subscribers_.erase(id_);
}

}  // namespace berth::admin
