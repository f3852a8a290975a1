#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "common/clock.h"
#include "common/event.h"

namespace berth::admin {

// Where every event of the server passes: it gets its number and its time, is given to the outlets
// (the log, the store) and to whoever watches, and is kept for a while. Thread-safe; never blocks
// on I/O, and what it keeps is bounded.
class EventHub : public EventSink {
 public:
  static constexpr std::size_t kKept = 4096;

  using Outlet = std::function<void(const Event&)>;

  // `last_sequence`: the highest number that was given under this state directory before.
  EventHub(const Clock& clock, std::uint64_t last_sequence)
      : clock_(clock), sequence_(last_sequence) {}

  // Before the first event. The outlet must not block and must not emit.
  void add_outlet(Outlet outlet) { outlets_.push_back(std::move(outlet)); }

  void emit(Event event) override;

  // Someone who watches. Called under the hub's lock, in order: it must not block, and must not
  // call the hub. Dropping the token ends it; then no call is running or will come.
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
  // First gives the events of this run that are kept and newer than `after_sequence`, within this
  // call, then every new one. `watch` false: only the kept ones.
  std::unique_ptr<Subscription> subscribe(std::uint64_t after_sequence, bool watch,
                                          std::function<void(const Event&)> callback);

 private:
  const Clock& clock_;
  std::vector<Outlet> outlets_;
  std::mutex mutex_;
  std::uint64_t sequence_;
  std::deque<Event> kept_;
  std::uint64_t next_subscriber_ = 1;
  std::map<std::uint64_t, std::function<void(const Event&)>> subscribers_;
};

}  // namespace berth::admin
