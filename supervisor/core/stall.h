#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/clock.h"

namespace berth::core {

// What is seen of a child and its descendants at one moment, all of it counted from the child's
// start. What cannot be seen is absent: it then is no evidence of anything.
struct TreeSample {
  std::uint64_t progress = 0;                   // grows with each report of its own that says more
  std::optional<std::uint64_t> storage_bytes;   // fetched from storage (read_bytes)
  std::optional<std::uint64_t> read_bytes;      // taken by read calls, from wherever (rchar)
  std::optional<Duration> cpu_time;             // user and system
  std::optional<std::uint64_t> resident_bytes;  // of the host's memory
  std::optional<std::uint64_t> device_bytes;
  std::optional<std::uint64_t> log_bytes;
  // Beginnings and ends of requests that we made ourselves to see whether it is ready: a server
  // writes of each to its log.
  std::uint64_t own_requests = 0;
};

// What shows that a load goes on (L8).
enum class Movement : std::uint8_t {
  kNone,
  kProgress,
  kReading,
  kComputing,
  kResident,
  kDevice,
  kLog,
};
// As in "last was …": "reading". Never fails.
std::string_view movement_name(Movement movement);

struct StallPolicy {
  Duration window = std::chrono::seconds(60);  // load_stall; command workers: 180 s
  // Below these it is the noise of a process that waits: health answers, garbage collection, a
  // monitoring thread. Counted over `span`, so that a burst is not taken for a rate.
  Duration span = std::chrono::seconds(10);
  double cores = 0.2;                         // CPU time counts above this share of one core
  std::uint64_t least_read = 64ULL << 10U;    // bytes by read calls within `span`
  std::uint64_t least_storage = 4ULL << 10U;  // bytes from storage within `span`
  std::uint64_t least_memory = 1ULL << 20U;   // bytes that memory grew or shrank within `span`
  // What is written to the log within one or two samples of a beginning or an end of a request of
  // our own, up to so many bytes for each: a line of an access log has a hundred or two. It shows
  // that the program answers us, not that its load goes on. No more, as a program that says little
  // must not have its own words taken for those.
  std::uint64_t log_of_request = 256;
  // The most that one step between two samples counts for: what nobody watched is not seen to
  // stand still (the machine was suspended or frozen, or the sampler came late).
  Duration longest_step = std::chrono::seconds(5);
};

// Decides whether a load moves (L8). Pure; one per load, fed by whoever samples the process tree,
// about once a second. A counter that falls (a process of the tree ended and took its share along)
// is no movement, and is followed from where it fell to.
class StallWatch {
 public:
  StallWatch(const StallPolicy& policy, SteadyTime begin);

  // Samples of one time or before the last one count as no time passed.
  void feed(const TreeSample& sample, SteadyTime now);

  // How long nothing moved, as far as it was watched.
  [[nodiscard]] Duration still_for() const { return still_; }
  // The same, but by the clock: what a reader compares with his watch.
  [[nodiscard]] SteadyTime moved_at() const { return moved_at_; }
  [[nodiscard]] Movement last_movement() const { return last_; }
  [[nodiscard]] bool stalled() const { return still_ >= policy_.window; }

  // "nothing moved for 60 s; last was reading, 61 s ago", for people; at most 120 bytes. `now` is
  // that of the last feed().
  [[nodiscard]] std::string reason() const;

 private:
  // The value at the beginning of a span, against which a growth is measured.
  template <typename Value>
  struct Mark {
    std::optional<Value> value;
    SteadyTime since{};
  };

  void moved(Movement movement);
  template <typename Value>
  void watch_growth(Mark<Value>& mark, const std::optional<Value>& value, const Value& least,
                    Movement movement);
  void watch_log(const TreeSample& sample);
  void watch_memory(Mark<std::uint64_t>& mark, const std::optional<std::uint64_t>& value,
                    Movement movement);
  template <typename Value>
  void renew(Mark<Value>& mark, const Value& value);

  StallPolicy policy_;
  SteadyTime begin_;
  SteadyTime now_;
  SteadyTime moved_at_;
  Duration still_{};
  Movement last_ = Movement::kNone;
  bool moved_now_ = false;

  std::uint64_t progress_ = 0;
  Mark<std::uint64_t> storage_;
  Mark<std::uint64_t> read_;
  Mark<Duration> cpu_;
  Mark<std::uint64_t> resident_;
  Mark<std::uint64_t> device_;
  std::uint64_t log_ = 0;
  std::uint64_t own_requests_ = 0;
  std::uint64_t log_excused_ = 0;  // bytes that may still come of the last sample's requests
};

}  // namespace berth::core
