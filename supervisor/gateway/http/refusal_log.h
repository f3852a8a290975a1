#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "common/event.h"
#include "common/result.h"

namespace berth::gateway {

// Tells of requests that were refused before a handler saw them (request.refused), so few that no
// client can flood the log: a burst, then one a second, which says how many were left out. The
// server's thread only.
class RefusalLog {
 public:
  // Null: tells nobody.
  explicit RefusalLog(EventSink* events) : events_(events) {}

  void tell(const std::string& request_id, const Error& why,
            std::chrono::steady_clock::time_point now) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(now - refilled_).count();
    if (seconds > 0) {
      left_ = seconds >= kBurst ? kBurst : std::min(kBurst, left_ + seconds);
      refilled_ = now;
    }
    if (left_ == 0 || events_ == nullptr) {
      ++untold_;
      return;
    }
    --left_;
    std::string message = why.message;
    if (untold_ > 0) message += " (" + std::to_string(untold_) + " more before it.)";
    untold_ = 0;
    events_->emit_typed(events::RequestRefused{.request = request_id,
                                               .model = "",
                                               .reason = std::string(reason_info(why.reason).name),
                                               .message = std::move(message)});
  }

 private:
  static constexpr std::int64_t kBurst = 20;

  EventSink* const events_;
  std::chrono::steady_clock::time_point refilled_{};
  std::int64_t left_ = kBurst;
  std::uint64_t untold_ = 0;
};

}  // namespace berth::gateway
