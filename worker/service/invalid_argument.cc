#include "worker/service/invalid_argument.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace berth::worker {

Error about(const Error& error, std::string param) {
  ErrorExtras extras;
  if (error.extras != nullptr) extras = *error.extras;
  extras.param = std::move(param);
  return {error.reason, error.message, std::move(extras)};
}

tl::unexpected<Error> out_of_range(const std::string& param, std::string_view range,
                                   std::string_view value) {
  return invalid_argument(
      param, param + " must be " + std::string(range) + ", not " + std::string(value) + ".");
}

std::string number_text(float number) {
  if (std::isnan(number)) return "not a number";
  if (std::isinf(number)) return number > 0 ? "infinity" : "-infinity";
  constexpr std::size_t kLongest = 32;  // of a float: 15
  std::array<char, kLongest> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number);
  return {text.data(), end.ptr};
}

}  // namespace berth::worker
