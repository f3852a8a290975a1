#include "supervisor/core/stall.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/clock.h"
#include "common/units.h"

namespace berth::core {
namespace {

std::string human(Duration duration) {
  // Whole seconds where there are any: a stall is not a matter of milliseconds.
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  const auto whole = std::chrono::floor<seconds>(duration);
  if (whole >= seconds(1)) return format_duration_human(whole);
  return format_duration_human(std::chrono::floor<milliseconds>(duration));
}

}  // namespace

std::string_view movement_name(Movement movement) {
  switch (movement) {
    case Movement::kNone:
      return "nothing";
    case Movement::kProgress:
      return "its own progress";
    case Movement::kReading:
      return "reading";
    case Movement::kComputing:
      return "computing";
    case Movement::kResident:
      return "its memory";
    case Movement::kDevice:
      return "its device memory";
    case Movement::kLog:
      return "its log";
  }
  return "nothing";
}

StallWatch::StallWatch(const StallPolicy& policy, SteadyTime begin)
    : policy_(policy), begin_(begin), now_(begin), moved_at_(begin) {}

void StallWatch::feed(const TreeSample& sample, SteadyTime now) {
  const Duration step = std::clamp<Duration>(now - now_, Duration::zero(), policy_.longest_step);
  now_ = std::max(now_, now);
  moved_now_ = false;

  // From the weakest evidence to the strongest: the last word is what a reader is told.
  const auto cpu_least = std::chrono::duration_cast<Duration>(policy_.span * policy_.cores);
  watch_growth<Duration>(cpu_, sample.cpu_time, cpu_least, Movement::kComputing);
  watch_memory(resident_, sample.resident_bytes, Movement::kResident);
  watch_memory(device_, sample.device_bytes, Movement::kDevice);
  watch_log(sample);
  watch_growth<std::uint64_t>(read_, sample.read_bytes, policy_.least_read, Movement::kReading);
  watch_growth<std::uint64_t>(storage_, sample.storage_bytes, policy_.least_storage,
                              Movement::kReading);
  if (sample.progress > progress_) moved(Movement::kProgress);
  progress_ = sample.progress;

  still_ = moved_now_ ? Duration::zero() : still_ + step;
}

std::string StallWatch::reason() const {
  std::string text = "nothing moved for " + human(still_);
  if (last_ == Movement::kNone) return text + ", since its start";
  text += "; last was ";
  text += movement_name(last_);
  return text + ", " + human(now_ - moved_at_) + " ago";
}

void StallWatch::moved(Movement movement) {
  moved_now_ = true;
  moved_at_ = now_;
  last_ = movement;
}

template <typename Value>
void StallWatch::renew(Mark<Value>& mark, const Value& value) {
  mark.value = value;
  mark.since = now_;
}

template <typename Value>
void StallWatch::watch_growth(Mark<Value>& mark, const std::optional<Value>& value,
                              const Value& least, Movement movement) {
  if (!value) return;
  if (!mark.value) {
    // The first look: from nothing at the start.
    mark.value = Value{};
    mark.since = begin_;
  }
  if (*value < *mark.value) {
    renew(mark, *value);
  } else if (*value - *mark.value >= least) {
    renew(mark, *value);
    moved(movement);
  } else if (now_ - mark.since >= policy_.span) {
    renew(mark, *value);
  }
}

void StallWatch::watch_log(const TreeSample& sample) {
  const std::uint64_t requests =
      sample.own_requests > own_requests_ ? sample.own_requests - own_requests_ : 0;
  own_requests_ = std::max(own_requests_, sample.own_requests);
  const std::uint64_t excused = requests * policy_.log_of_request;
  const std::uint64_t still_excused = std::exchange(log_excused_, excused);
  if (!sample.log_bytes) return;
  const std::uint64_t before = std::exchange(log_, *sample.log_bytes);
  const std::uint64_t grown = log_ > before ? log_ - before : 0;
  if (grown > still_excused + excused) {
    log_excused_ = 0;
    moved(Movement::kLog);
  } else if (grown > still_excused) {
    log_excused_ -= grown - still_excused;
  }
}

void StallWatch::watch_memory(Mark<std::uint64_t>& mark, const std::optional<std::uint64_t>& value,
                              Movement movement) {
  if (!value) return;
  if (!mark.value) {
    mark.value = 0;
    mark.since = begin_;
  }
  const std::uint64_t change = *value < *mark.value ? *mark.value - *value : *value - *mark.value;
  if (change >= policy_.least_memory) {
    renew(mark, *value);
    moved(movement);
  } else if (now_ - mark.since >= policy_.span) {
    renew(mark, *value);
  }
}

}  // namespace berth::core
