#include "supervisor/admin/event_hub.h"

#include <algorithm>
#include <utility>

namespace berth::admin {

void EventHub::emit(Event event) {
  const std::lock_guard lock(mutex_);
  event.sequence = ++sequence_;
  event.time = clock_.wall_now();
  for (const Outlet& outlet : outlets_) outlet(event);
  const auto shared = std::make_shared<const Event>(std::move(event));
  for (const auto& [id, watcher] : subscribers_) watcher(shared);
  kept_.push_back(shared);
  if (kept_.size() > kKept) kept_.pop_front();
}

EventHub::Watched EventHub::newer_than(std::uint64_t sequence) const {
  const auto from = std::ranges::upper_bound(kept_, sequence, {},
                                             [](const EventPtr& event) { return event->sequence; });
  Watched found;
  found.kept.assign(from, kept_.end());
  if (!kept_.empty()) found.oldest = kept_.front()->sequence;
  return found;
}

EventHub::Watched EventHub::kept(std::uint64_t after_sequence) const {
  const std::lock_guard lock(mutex_);
  return newer_than(after_sequence);
}

std::uint64_t EventHub::last_sequence() const {
  const std::lock_guard lock(mutex_);
  return sequence_;
}

EventHub::EventPtr EventHub::oldest() const {
  const std::lock_guard lock(mutex_);
  return kept_.empty() ? nullptr : kept_.front();
}

EventHub::Watched EventHub::watch(std::uint64_t after_sequence, Watcher watcher) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t id = next_subscriber_++;
  subscribers_.emplace(id, std::move(watcher));
  Watched watched = newer_than(after_sequence);
  watched.subscription = std::make_unique<Subscription>(*this, id);
  return watched;
}

EventHub::Subscription::~Subscription() {
  const std::lock_guard lock(hub_.mutex_);
  hub_.subscribers_.erase(id_);
}

Result<std::unique_ptr<EventHub::Place>> EventHub::take_place(const std::string& tenant) {
  const std::lock_guard lock(places_mutex_);
  const auto of_tenant = places_of_.find(tenant);
  if (places_ >= kMostWatchers ||
      (of_tenant != places_of_.end() && of_tenant->second >= kMostOfTenant)) {
    ErrorExtras extras;
    extras.retry_after_seconds = 10;
    return fail(Error(Reason::kQueueFull,
                      "Too many watch already: at most " + std::to_string(kMostOfTenant) +
                          " of one tenant, and " + std::to_string(kMostWatchers) + " in all.",
                      std::move(extras)));
  }
  ++places_;
  ++places_of_[tenant];
  return std::make_unique<Place>(*this, tenant);
}

EventHub::Place::~Place() {
  const std::lock_guard lock(hub_.places_mutex_);
  --hub_.places_;
  const auto at = hub_.places_of_.find(tenant_);
  if (--at->second == 0) hub_.places_of_.erase(at);
}

}  // namespace berth::admin
