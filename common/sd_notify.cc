#include "common/sd_notify.h"

#include <systemd/sd-daemon.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/text.h"

namespace berth::systemd {

// Nothing can be done about a message that does not arrive: the results are not looked at.

void notify_ready() {
  sd_notify(0, "READY=1");
}

void notify_stopping() {
  sd_notify(0, "STOPPING=1");
}

void notify_status(std::string_view status) {
  constexpr std::size_t kLongest = 1024;
  sd_notify(0, ("STATUS=" + printable_line(status, kLongest)).c_str());
}

void notify_watchdog() {
  sd_notify(0, "WATCHDOG=1");
}

std::optional<Duration> watchdog_interval() {
  std::uint64_t microseconds = 0;
  if (sd_watchdog_enabled(0, &microseconds) <= 0) return std::nullopt;
  return std::chrono::microseconds(microseconds);
}

}  // namespace berth::systemd
