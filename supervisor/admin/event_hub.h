#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/event.h"
#include "common/result.h"

namespace berth::admin {

// Where every event of the server passes: it gets its number and its time, is given to the outlets
// (the log, the store) and to whoever watches, and is kept for a while. Thread-safe; never blocks
// on I/O, and what it keeps is bounded. The core strand emits, so its lock is held briefly.
class EventHub : public EventSink {
 public:
  static constexpr std::size_t kKept = 4096;
  // Who watch at once, in all and of one tenant.
  static constexpr std::size_t kMostWatchers = 128;
  static constexpr std::size_t kMostOfTenant = 32;

  using Outlet = std::function<void(const Event&)>;
  using EventPtr = std::shared_ptr<const Event>;
  using Watcher = std::function<void(const EventPtr&)>;

  // `last_sequence`: the highest number that was given under this state directory before.
  EventHub(const Clock& clock, std::uint64_t last_sequence)
      : clock_(clock), sequence_(last_sequence) {}

  // Before the first event. The outlet must not block and must not emit.
  void add_outlet(Outlet outlet) { outlets_.push_back(std::move(outlet)); }

  void emit(Event event) override;

  // Someone who watches. Called under the hub's lock, in order: it must do next to nothing, and
  // must not call the hub. Dropping the token ends it; then no call is running or will come.
  class Subscription {
   public:
    Subscription(EventHub& hub, std::uint64_t id) : hub_(hub), id_(id) {}
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;
    ~Subscription();

   private:
    EventHub& hub_;
    std::uint64_t id_;
  };
  struct Watched {
    std::vector<EventPtr> kept;  // of this run, newer than what was asked for
    std::uint64_t oldest = 0;    // number of all that is kept; 0: nothing is
    std::unique_ptr<Subscription> subscription;
  };
  // What is kept and newer than `after_sequence`; the watcher gets every event that comes later.
  Watched watch(std::uint64_t after_sequence, Watcher watcher);
  // The same without a watcher.
  [[nodiscard]] Watched kept(std::uint64_t after_sequence) const;
  // The number of the last event, and the oldest that is kept; null: none is.
  [[nodiscard]] std::uint64_t last_sequence() const;
  [[nodiscard]] EventPtr oldest() const;

  // The place of one who watches events or the state; dropping it frees the place.
  class Place {
   public:
    Place(EventHub& hub, std::string tenant) : hub_(hub), tenant_(std::move(tenant)) {}
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place();

   private:
    EventHub& hub_;
    const std::string tenant_;
  };
  // Errors: kQueueFull.
  Result<std::unique_ptr<Place>> take_place(const std::string& tenant);

 private:
  // Under the lock.
  [[nodiscard]] Watched newer_than(std::uint64_t sequence) const;

  const Clock& clock_;
  std::vector<Outlet> outlets_;
  mutable std::mutex mutex_;
  std::uint64_t sequence_;
  std::deque<EventPtr> kept_;
  std::uint64_t next_subscriber_ = 1;
  std::map<std::uint64_t, Watcher> subscribers_;
  std::mutex places_mutex_;
  std::size_t places_ = 0;
  std::map<std::string, std::size_t> places_of_;
};

}  // namespace berth::admin
