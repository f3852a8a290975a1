#include "supervisor/cli/chat/settings.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/text.h"

namespace berth::cli {
namespace {

template <typename Number>
std::optional<Number> parse(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

template <typename Number, typename Valid>
Status change(std::optional<Number>& setting, std::string_view name, std::string_view value,
              const char* expected, Valid valid) {
  if (value == "default") {
    setting.reset();
    return {};
  }
  const auto number = parse<Number>(value);
  if (!number || !valid(*number)) {
    return fail(Reason::kInvalidArgument, std::string(name) + ": expected " + expected +
                                              " or default, not '" + printable_line(value, 64) +
                                              "'");
  }
  setting = *number;
  return {};
}

constexpr auto kAny = [](std::uint32_t) { return true; };

template <typename Number>
std::string shown(const std::optional<Number>& setting) {
  if (!setting) return "default";
  std::string text(32, '\0');
  const auto end = std::to_chars(text.data(), text.data() + text.size(), *setting).ptr;
  text.resize(static_cast<std::size_t>(end - text.data()));
  return text;
}

}  // namespace

bool valid_temperature(float value) {
  return value >= 0 && value <= 100;
}
bool valid_top_p(float value) {
  return value > 0 && value <= 1;
}

Status change_setting(SamplingOptions& sampling, std::string_view name, std::string_view value) {
  if (name == "temperature") {
    return change(sampling.temperature, name, value, "a number from 0 to 100", valid_temperature);
  }
  if (name == "top_p") {
    return change(sampling.top_p, name, value, "a number above 0, to 1", valid_top_p);
  }
  if (name == "top_k") {
    return change(sampling.top_k, name, value, "a whole number (0: off)", kAny);
  }
  if (name == "seed") return change(sampling.seed, name, value, "a whole number", kAny);
  if (name == "max_tokens") {
    return change(sampling.max_tokens, name, value, "a whole number of at least 1",
                  [](std::uint32_t tokens) { return tokens > 0; });
  }
  const std::vector<std::string> names = {"temperature", "top_k", "top_p", "seed", "max_tokens"};
  return fail(Reason::kInvalidArgument, "there is no setting '" + printable_line(name, 64) +
                                            "'; there are " + join_names(names));
}

std::string describe_settings(const SamplingOptions& sampling) {
  return "temperature " + shown(sampling.temperature) + "\ntop_k       " + shown(sampling.top_k) +
         "\ntop_p       " + shown(sampling.top_p) + "\nseed        " + shown(sampling.seed) +
         "\nmax_tokens  " + shown(sampling.max_tokens);
}

}  // namespace berth::cli
