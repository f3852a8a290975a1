#include "worker/grammar/number_range.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace berth::worker {
namespace {

constexpr std::uint64_t kLargestWhole = 9'999'999'999'999'999'999U;  // of 19 digits
constexpr std::string_view kFraction = R"(("." [0-9]{1,16})?)";
constexpr std::string_view kZeros = R"(("." "0"{1,16})?)";
constexpr std::string_view kNotZero = R"("." "0"{0,15} [1-9] [0-9]{0,15})";

std::string join(const std::vector<std::string>& ways) {
  if (ways.empty()) return {};
  if (ways.size() == 1) return ways.front();
  std::string text = "(";
  for (std::size_t i = 0; i < ways.size(); ++i) text += (i == 0 ? "" : " | ") + ways[i];
  return text + ")";
}

std::string digits(std::size_t least, std::size_t most) {
  if (most == 0) return {};
  if (least == 1 && most == 1) return "[0-9]";
  if (least == most) return "[0-9]{" + std::to_string(least) + "}";
  return "[0-9]{" + std::to_string(least) + "," + std::to_string(most) + "}";
}

std::string then(std::string first, const std::string& second) {
  if (second.empty()) return first;
  return first + " " + second;
}

std::string digit_range(char first, char last) {
  if (first == last) return std::string("\"") + first + "\"";
  return std::string("[") + first + "-" + last + "]";
}

bool all(std::string_view text, char c) {
  return text.find_first_not_of(c) == std::string_view::npos;
}

// Numbers of equally many digits; low <= high.
std::string same_length(std::string_view low, std::string_view high) {
  if (low.empty()) return {};
  const auto rest = low.size() - 1;
  if (low.front() == high.front()) {
    return then(digit_range(low.front(), low.front()), same_length(low.substr(1), high.substr(1)));
  }
  std::vector<std::string> ways;
  char first = low.front();
  char last = high.front();
  if (!all(low.substr(1), '0')) {
    ways.push_back(
        then(digit_range(first, first), same_length(low.substr(1), std::string(rest, '9'))));
    ++first;
  }
  std::string upper;
  if (!all(high.substr(1), '9')) {
    upper = then(digit_range(last, last), same_length(std::string(rest, '0'), high.substr(1)));
    --last;
  }
  if (first <= last) ways.push_back(then(digit_range(first, last), digits(rest, rest)));
  if (!upper.empty()) ways.push_back(upper);
  return join(ways);
}

// low <= high <= kLargestWhole.
std::string whole_range(std::uint64_t low, std::uint64_t high) {
  std::vector<std::string> ways;
  if (low == 0) {
    ways.emplace_back("\"0\"");
    if (high == 0) return ways.front();
    low = 1;
  }
  std::size_t full_from = 0;  // lengths of which all numbers belong to the range
  std::size_t full_to = 0;
  std::vector<std::string> partial;
  std::uint64_t smallest = 1;
  for (std::size_t length = 1; length <= 19; ++length, smallest *= 10) {
    const std::uint64_t largest = smallest + (smallest - 1) + smallest * 8;
    const auto from = std::max(low, smallest);
    const auto to = std::min(high, largest);
    if (from > to) continue;
    if (from == smallest && to == largest) {
      if (full_from == 0) full_from = length;
      full_to = length;
    } else {
      partial.push_back(same_length(std::to_string(from), std::to_string(to)));
    }
  }
  if (full_from > 0) ways.push_back(then("[1-9]", digits(full_from - 1, full_to - 1)));
  ways.insert(ways.end(), partial.begin(), partial.end());
  return join(ways);
}

std::uint64_t magnitude(std::int64_t value) {
  return value < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(value)
                   : static_cast<std::uint64_t>(value);
}

struct Side {
  std::uint64_t value = 0;
  bool exclusive = false;
};

// Decimal numbers without sign.
std::string magnitudes(Side low, std::optional<Side> high) {
  const auto top = high ? high->value : kLargestWhole;
  if (low.value > top) return {};
  const auto exact = [](std::uint64_t value) { return "\"" + std::to_string(value) + "\""; };
  std::vector<std::string> ways;
  if (low.value == top) {
    if (low.exclusive || (high && high->exclusive)) return {};
    return exact(low.value) + " " + std::string(high ? kZeros : kFraction);
  }
  ways.push_back(exact(low.value) + " " + std::string(low.exclusive ? kNotZero : kFraction));
  const auto last_free = high ? top - 1 : top;
  if (low.value + 1 <= last_free) {
    ways.push_back(whole_range(low.value + 1, last_free) + " " + std::string(kFraction));
  }
  if (high && !high->exclusive) ways.push_back(exact(top) + " " + std::string(kZeros));
  return join(ways);
}

}  // namespace

std::string integer_range(std::optional<std::int64_t> low, std::optional<std::int64_t> high) {
  if (low && high && *low > *high) return {};
  std::vector<std::string> ways;
  if (!low || *low < 0) {
    const auto from = high && *high < 0 ? magnitude(*high) : 1;
    ways.push_back("\"-\" " + whole_range(from, low ? magnitude(*low) : kLargestWhole));
  }
  if (!high || *high >= 0) {
    const auto from = low && *low > 0 ? magnitude(*low) : 0;
    ways.push_back(whole_range(from, high ? magnitude(*high) : kLargestWhole));
  }
  return join(ways);
}

std::string decimal_range(std::optional<NumberBound> low, std::optional<NumberBound> high) {
  std::vector<std::string> ways;
  const auto side = [](const NumberBound& bound) {
    return Side{magnitude(bound.value), bound.exclusive};
  };
  if (!low || low->value < 0) {
    const Side from = high && high->value < 0 ? side(*high) : Side{0, true};
    const auto text = magnitudes(from, low ? std::optional<Side>(side(*low)) : std::nullopt);
    if (!text.empty() && (!high || high->value < 0 || from.value == 0))
      ways.push_back("\"-\" " + text);
  }
  if (!high || high->value >= 0) {
    const Side from = low && low->value >= 0 ? side(*low) : Side{0, false};
    const auto text = magnitudes(from, high ? std::optional<Side>(side(*high)) : std::nullopt);
    if (!text.empty()) ways.push_back(text);
  }
  return join(ways);
}

}  // namespace berth::worker
