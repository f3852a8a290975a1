#include "common/wall_time.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>

namespace berth {

std::string format_utc(WallTime time) {
  using std::chrono::days;
  using std::chrono::milliseconds;
  using std::chrono::sys_days;
  constexpr WallTime kFirst = sys_days(std::chrono::year(0) / 1 / 1);
  constexpr WallTime kLast =
      WallTime(sys_days(std::chrono::year(10'000) / 1 / 1)) - milliseconds(1);
  const WallTime shown = std::clamp(time, kFirst, kLast);
  const auto midnight = std::chrono::floor<days>(shown);
  const std::chrono::year_month_day date(midnight);
  const std::chrono::hh_mm_ss clock(shown - midnight);
  std::array<char, 64> out{};
  const int length = std::snprintf(
      out.data(), out.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
      static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return {out.data(), static_cast<std::size_t>(length)};
}

}  // namespace berth
