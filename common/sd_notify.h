#pragma once

#include <optional>
#include <string_view>

#include "common/clock.h"

namespace berth::systemd {

// What a service tells systemd (sd_notify(3)). Without systemd, that is without NOTIFY_SOCKET in
// the environment, they do nothing. Any thread; the environment must not be changed meanwhile.

void notify_ready();
void notify_stopping();
// One line, shown by `systemctl status`; sanitised.
void notify_status(std::string_view status);
void notify_watchdog();

// How often notify_watchdog() must be called at the latest, or systemd kills the service; half of
// it is a good period. Nothing where no watchdog is set for this process.
std::optional<Duration> watchdog_interval();

}  // namespace berth::systemd
