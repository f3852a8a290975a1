#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace berth::worker {

// One side of a range of JSON numbers.
struct NumberBound {
  std::int64_t value = 0;
  bool exclusive = false;
};

// GBNF for the integers from `low` to `high`, both inclusive; a side that is missing is bounded by
// 19 digits. Empty text where no integer lies between them.
std::string integer_range(std::optional<std::int64_t> low, std::optional<std::int64_t> high);

// GBNF for the decimal numbers between the bounds, without exponent, up to 16 digits of fraction.
// Empty text where there are none. (Between two neighbours that are both exclusive lie fractions.)
std::string decimal_range(std::optional<NumberBound> low, std::optional<NumberBound> high);

}  // namespace berth::worker
