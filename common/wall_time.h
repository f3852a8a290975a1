#pragma once

#include <string>

#include "common/clock.h"

namespace berth {

// "2026-11-29T18:40:01.123Z", for years 0000 to 9999; outside them the nearest of these bounds.
std::string format_utc(WallTime time);

}  // namespace berth
