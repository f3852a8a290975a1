#include "common/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <optional>

namespace berth {
namespace {

struct ByteUnit {
  std::string_view name;
  unsigned shift;
};
constexpr std::array kByteUnits = {ByteUnit{"B", 0}, ByteUnit{"KiB", 10}, ByteUnit{"MiB", 20},
                                   ByteUnit{"GiB", 30}, ByteUnit{"TiB", 40}};

struct DurationUnit {
  std::string_view name;
  std::int64_t milliseconds;
};
constexpr std::array kDurationUnits = {DurationUnit{"ms", 1}, DurationUnit{"s", 1'000},
                                       DurationUnit{"m", 60'000}, DurationUnit{"h", 3'600'000}};

constexpr std::int64_t kMaxDurationMs = 10LL * 366 * 86'400'000;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

struct Amount {
  std::uint64_t number = 0;
  std::string_view unit;
};

// Takes "12unit" off the front of `rest`.
std::optional<Amount> take_amount(std::string_view& rest) {
  Amount amount;
  const char* end = rest.data() + rest.size();
  const auto [stop, error] = std::from_chars(rest.data(), end, amount.number);
  if (error != std::errc()) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(stop - rest.data()));
  std::size_t length = 0;
  while (length < rest.size() && !is_digit(rest[length])) ++length;
  amount.unit = rest.substr(0, length);
  rest.remove_prefix(length);
  return amount;
}

std::string quoted_start(std::string_view text) {
  constexpr std::size_t kShown = 40;
  std::string shown = "'" + std::string(text.substr(0, kShown));
  return shown + (text.size() > kShown ? "…'" : "'");
}

tl::unexpected<Error> not_a_size(std::string_view text, std::string_view why) {
  return fail(Reason::kInvalidArgument,
              quoted_start(text) + " is not a size" + std::string(why) +
                  ": expected a whole number and one of B, KiB, MiB, GiB, TiB, such as 512MiB");
}

tl::unexpected<Error> not_a_duration(std::string_view text, std::string_view why) {
  return fail(Reason::kInvalidArgument,
              quoted_start(text) + " is not a duration" + std::string(why) +
                  ": expected whole numbers with ms, s, m or h, such as 250ms, 30s or 1h30m");
}

}  // namespace

Result<std::uint64_t> parse_bytes(std::string_view text) {
  if (text == "0") return 0;
  std::string_view rest = text;
  const auto amount = take_amount(rest);
  if (!amount || !rest.empty()) return not_a_size(text, "");
  for (const ByteUnit& unit : kByteUnits) {
    if (unit.name != amount->unit) continue;
    if (amount->number > (std::numeric_limits<std::uint64_t>::max() >> unit.shift)) {
      return not_a_size(text, " that fits into 64 bits");
    }
    return amount->number << unit.shift;
  }
  return not_a_size(text, "");
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array kNames = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 999.5 of a unit would be shown as 1000 of it.
  while (unit + 1 < kNames.size() && value >= (unit == 0 ? 1024.0 : 999.5)) {
    value /= 1024.0;
    ++unit;
  }
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::array<char, 32> out{};
  const int length =
      std::snprintf(out.data(), out.size(), "%.*f %s", decimals, value, kNames.at(unit));
  return {out.data(), static_cast<std::size_t>(length)};
}

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  if (text == "0") return std::chrono::milliseconds(0);
  if (text.empty()) return not_a_duration(text, "");
  std::string_view rest = text;
  std::int64_t total = 0;
  std::int64_t previous_unit = std::numeric_limits<std::int64_t>::max();
  while (!rest.empty()) {
    const auto amount = take_amount(rest);
    if (!amount) return not_a_duration(text, "");
    std::int64_t unit_ms = 0;
    for (const DurationUnit& unit : kDurationUnits) {
      if (unit.name == amount->unit) unit_ms = unit.milliseconds;
    }
    if (unit_ms == 0) return not_a_duration(text, "");
    if (unit_ms >= previous_unit) return not_a_duration(text, " with its largest unit first");
    previous_unit = unit_ms;
    if (amount->number > static_cast<std::uint64_t>(kMaxDurationMs / unit_ms)) {
      return not_a_duration(text, " of at most 10 years");
    }
    total += static_cast<std::int64_t>(amount->number) * unit_ms;
    if (total > kMaxDurationMs) return not_a_duration(text, " of at most 10 years");
  }
  return std::chrono::milliseconds(total);
}

std::string format_duration(std::chrono::milliseconds duration) {
  const std::int64_t ms = duration.count();
  if (ms == 0) return "0s";
  if (ms % 3'600'000 == 0) return std::to_string(ms / 3'600'000) + "h";
  // "90s" reads better than "1m30s"; both are exact.
  if (ms % 60'000 == 0) return std::to_string(ms / 60'000) + "m";
  if (ms % 1'000 == 0) return std::to_string(ms / 1'000) + "s";
  return std::to_string(ms) + "ms";
}

std::string format_duration_human(std::chrono::milliseconds duration) {
  if (duration < std::chrono::milliseconds(0)) {
    constexpr std::chrono::milliseconds kLowest = -std::chrono::milliseconds::max();
    return "-" + format_duration_human(-std::max(duration, kLowest));
  }
  const std::int64_t ms = duration.count();
  if (ms < 1'000) return std::to_string(ms) + " ms";
  if (ms < 59'950) {
    std::array<char, 32> out{};
    const int length =
        std::snprintf(out.data(), out.size(), "%.1f s", static_cast<double>(ms) / 1e3);
    return {out.data(), static_cast<std::size_t>(length)};
  }
  const std::int64_t seconds = ms / 1'000 + (ms % 1'000 >= 500 ? 1 : 0);
  const auto pair = [](std::int64_t high, const char* high_unit, std::int64_t low,
                       const char* low_unit) {
    std::string text = std::to_string(high) + high_unit;
    if (low != 0) text += " " + std::to_string(low) + low_unit;
    return text;
  };
  if (seconds < 3'600) return pair(seconds / 60, " min", seconds % 60, " s");
  const std::int64_t minutes = (seconds + 30) / 60;
  if (minutes < 2'880) return pair(minutes / 60, " h", minutes % 60, " min");
  const std::int64_t hours = (minutes + 30) / 60;
  return pair(hours / 24, " d", hours % 24, " h");
}

}  // namespace berth
