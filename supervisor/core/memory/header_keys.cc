#include "supervisor/core/memory/header_keys.h"

#include <cmath>
#include <variant>

#include "common/text.h"

namespace berth::core {
namespace {

constexpr std::size_t kMaxShownBytes = 120;
// No architecture has a longer name; a file's may have megabytes.
constexpr std::size_t kMaxArchitectureBytes = 64;

tl::unexpected<Error> bad(const std::string& key, const std::string& what) {
  return fail(Reason::kInvalidArgument, "'" + printable_line(key, kMaxShownBytes) + "' " + what);
}

std::string most_allowed(std::uint32_t most) {
  return "; at most " + std::to_string(most) + " is allowed";
}

}  // namespace

HeaderKeys::HeaderKeys(const gguf::Header& header)
    : header_(header),
      prefix_(header.text("general.architecture").value_or("").substr(0, kMaxArchitectureBytes) +
              ".") {}

std::string HeaderKeys::full(std::string_view name) const {
  return prefix_ + std::string(name);
}

std::string HeaderKeys::shown(std::string_view name) const {
  return "'" + printable_line(full(name), kMaxShownBytes) + "'";
}

bool HeaderKeys::has(std::string_view name) const {
  return header_.metadata.contains(full(name));
}

bool HeaderKeys::is_list(std::string_view name) const {
  const auto at = header_.metadata.find(full(name));
  return at != header_.metadata.end() && std::holds_alternative<gguf::Array>(at->second);
}

Result<std::uint32_t> HeaderKeys::number(std::string_view name, std::uint32_t most,
                                         std::uint32_t fallback) const {
  const std::string key = full(name);
  if (!header_.metadata.contains(key)) return fallback;
  const auto value = header_.integer(key);
  if (!value) return bad(key, "must be a number that is not negative");
  if (*value > most) return bad(key, "is " + std::to_string(*value) + most_allowed(most));
  return static_cast<std::uint32_t>(*value);
}

Result<std::vector<std::uint32_t>> HeaderKeys::per_layer(std::string_view name, std::size_t layers,
                                                         std::uint32_t most,
                                                         std::uint32_t fallback) const {
  if (!is_list(name)) {
    const auto value = number(name, most, fallback);
    if (!value) return fail(value.error());
    return std::vector<std::uint32_t>(layers, *value);
  }
  const std::string key = full(name);
  const auto& list = std::get<gguf::Array>(header_.metadata.find(key)->second);
  if (list.numbers.size() < layers) {
    return bad(key, "has " + std::to_string(list.numbers.size()) + " numbers for " +
                        std::to_string(layers) + " layers");
  }
  std::vector<std::uint32_t> values;
  values.reserve(layers);
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const double value = list.numbers[layer];
    if (!(value >= 0) || value > most || value != std::floor(value)) {
      return bad(
          key, "has an impossible number for layer " + std::to_string(layer) + most_allowed(most));
    }
    values.push_back(static_cast<std::uint32_t>(value));
  }
  return values;
}

}  // namespace berth::core
