#include "worker/service/option_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "common/text.h"

namespace berth::worker {
namespace {

constexpr std::size_t kShownBytes = 80;
constexpr std::size_t kMaxEntries = 64;
constexpr float kMaxScale = 100;

tl::unexpected<Error> expected(std::string_view name, std::string_view what,
                               std::string_view text) {
  return fail(Reason::kInvalidArgument, std::string(name) + " must be " + std::string(what) +
                                            ", not \"" + printable_line(text, kShownBytes) + "\".");
}

// A finite number that is the whole text.
std::optional<float> number(std::string_view text) {
  float value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

// The parts between commas; one more than there are commas.
std::vector<std::string_view> parts(std::string_view text) {
  std::vector<std::string_view> found;
  for (;;) {
    const auto comma = text.find(',');
    found.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos || found.size() > kMaxEntries) return found;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

Status set_text(std::string_view name, std::string_view text, std::string& out) {
  if (text.empty()) {
    return fail(Reason::kInvalidArgument, std::string(name) + " must not be empty.");
  }
  out = text;
  return {};
}

Status set_number(std::string_view name, std::string_view text, std::uint32_t lowest,
                  std::uint32_t highest, std::uint32_t& out) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < lowest ||
      value > highest) {
    return expected(
        name, "a whole number from " + std::to_string(lowest) + " to " + std::to_string(highest),
        text);
  }
  out = value;
  return {};
}

Status set_choice(std::string_view name, std::string_view text,
                  std::span<const std::string_view> choices, std::string& out) {
  if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
    std::string list = "one of ";
    for (const auto choice : choices) {
      list.append(choice.data() == choices.front().data() ? "" : ", ").append(choice);
    }
    return expected(name, list, text);
  }
  out = text;
  return {};
}

Status add_names(std::string_view name, std::string_view text, std::vector<std::string>& out) {
  for (const auto part : parts(text)) {
    if (part.empty() || out.size() == kMaxEntries) {
      return expected(name, "up to 64 names with commas between them", text);
    }
    out.emplace_back(part);
  }
  return {};
}

Status set_shares(std::string_view name, std::string_view text, std::vector<float>& out) {
  out.clear();
  float sum = 0;
  for (const auto part : parts(text)) {
    const auto share = number(part);
    if (!share || *share < 0 || out.size() == kMaxEntries) {
      return expected(name, "up to 64 numbers from 0 with commas between them", text);
    }
    sum += *share;
    out.push_back(*share);
  }
  if (!(sum > 0) || !std::isfinite(sum)) {
    return expected(name, "numbers of which one is not 0", text);
  }
  return {};
}

Status add_scaled_path(std::string_view name, std::string_view text,
                       std::vector<std::pair<std::string, float>>& out) {
  float scale = 1;
  auto path = text;
  if (const auto equals = text.rfind('='); equals != std::string_view::npos) {
    if (const auto value = number(text.substr(equals + 1))) {
      path = text.substr(0, equals);
      scale = *value;
    }
  }
  if (path.empty() || std::abs(scale) > kMaxScale || out.size() == kMaxEntries) {
    return expected(name, "a path, or PATH=SCALE with a scale from -100 to 100; 64 at most", text);
  }
  out.emplace_back(path, scale);
  return {};
}

}  // namespace berth::worker
