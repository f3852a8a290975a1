#include "tests/fake_engine/fake_settings.h"

#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

namespace berth::worker {
namespace {

using Setter = std::function<bool(FakeSettings&, std::string_view)>;

template <typename Number>
bool read_number(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

template <typename Number>
Setter number(Number FakeSettings::*member) {
  return [member](FakeSettings& s, std::string_view v) { return read_number(v, s.*member); };
}

Setter speed(double FakeSettings::*member) {
  return [member](FakeSettings& s, std::string_view v) {
    return read_number(v, s.*member) && std::isfinite(s.*member) && s.*member >= 0;
  };
}

Setter flag(bool FakeSettings::*member) {
  return [member](FakeSettings& s, std::string_view v) {
    s.*member = v == "true";
    return v == "true" || v == "false";
  };
}

Setter text(std::string FakeSettings::*member) {
  return [member](FakeSettings& s, std::string_view v) {
    s.*member = v;
    return true;
  };
}

Setter failure(FakeFailure FakeSettings::*member) {
  return [member](FakeSettings& s, std::string_view v) {
    static const std::map<std::string_view, FakeFailure> kNames = {
        {"error", FakeFailure::kError}, {"hang", FakeFailure::kHang},
        {"stuck", FakeFailure::kStuck}, {"crash", FakeFailure::kCrash},
        {"exit", FakeFailure::kExit},
    };
    const auto found = kNames.find(v);
    if (found == kNames.end()) return false;
    s.*member = found->second;
    return true;
  };
}

bool set_load_time(FakeSettings& settings, std::string_view value) {
  std::uint32_t milliseconds = 0;
  if (!read_number(value, milliseconds)) return false;
  settings.load = std::chrono::milliseconds(milliseconds);
  return true;
}

bool set_purpose(FakeSettings& settings, std::string_view value) {
  settings.purpose = value == "embed" ? Purpose::kEmbed : Purpose::kGenerate;
  return value == "embed" || value == "generate";
}

bool add_control_token(FakeSettings& settings, std::string_view value) {
  settings.control_tokens.emplace_back(value);
  return !value.empty();
}

const std::map<std::string_view, Setter>& setters() {
  using S = FakeSettings;
  static const auto* const table = new std::map<std::string_view, Setter>{
      {"sequences", number(&S::sequences)},
      {"window", number(&S::window)},
      {"cells", number(&S::cells)},
      {"batch", number(&S::batch)},
      {"threads", number(&S::threads)},
      {"purpose", &set_purpose},
      {"embedding_size", number(&S::embedding_size)},
      {"pooling", text(&S::pooling)},
      {"shares_cells", flag(&S::shares_cells)},
      {"chat_template", text(&S::chat_template)},
      {"control_token", &add_control_token},
      {"layers", number(&S::layers)},
      {"seed", number(&S::seed)},
      {"endless", flag(&S::endless)},
      {"prompt_speed", speed(&S::prompt_speed)},
      {"generation_speed", speed(&S::generation_speed)},
      {"load_ms", &set_load_time},
      {"weights_bytes", number(&S::weights_bytes)},
      {"kv_bytes", number(&S::kv_bytes)},
      {"working_bytes", number(&S::working_bytes)},
      {"touch_memory", flag(&S::touch_memory)},
      {"draft_tokens", number(&S::draft_tokens)},
      {"draft_right_percent", number(&S::draft_right_percent)},
      {"draft_speed", speed(&S::draft_speed)},
      {"load_failure_phase", text(&S::load_failure_phase)},
      {"load_failure", failure(&S::load_failure)},
      {"load_failure_class", text(&S::load_failure_class)},
      {"load_failure_reason", text(&S::load_failure_reason)},
      {"failing_batch", number(&S::failing_batch)},
      {"batch_failure", failure(&S::batch_failure)},
  };
  return *table;
}

std::string_view trimmed(std::string_view part) {
  const auto begin = part.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return part.substr(begin, part.find_last_not_of(" \t\r") - begin + 1);
}

Status set_line(std::string_view line, FakeSettings& settings) {
  const auto equals = line.find('=');
  const auto key = trimmed(line.substr(0, equals));
  if (equals == std::string_view::npos) {
    return fail(Reason::kInvalidArgument, "\"" + std::string(line) + "\" has no =");
  }
  const auto setter = setters().find(key);
  if (setter == setters().end()) {
    return fail(Reason::kInvalidArgument, "there is no setting \"" + std::string(key) + "\"");
  }
  const auto value = trimmed(line.substr(equals + 1));
  if (setter->second(settings, value)) return {};
  return fail(Reason::kInvalidArgument,
              "\"" + std::string(value) + "\" is no value of " + std::string(key));
}

// Whether a line begins at `at`, behind another one, and has no more than the end mark.
bool is_end_line(std::string_view text, std::size_t at) {
  constexpr std::string_view kAfter("\n\r\0", 3);
  const auto rest = text.substr(at + kFakeModelEnd.size());
  return text[at - 1] == '\n' && (rest.empty() || kAfter.find(rest.front()) != kAfter.npos);
}

}  // namespace

Status read_fake_settings(std::string_view text, FakeSettings& settings) {
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const auto end = text.find('\n');
    const auto line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    if (auto set = set_line(line, settings); !set) {
      return fail(Reason::kInvalidArgument,
                  "line " + std::to_string(number) + ": " + set.error().message);
    }
  }
  return {};
}

std::optional<std::string_view> find_fake_settings(std::string_view file) {
  constexpr std::size_t kSearched = std::size_t{1} << 20U;
  const auto begin = file.substr(0, kSearched).find(kFakeModelBegin);
  if (begin == std::string_view::npos) return std::nullopt;
  const auto rest = file.substr(begin);
  auto end = rest.find(kFakeModelEnd, kFakeModelBegin.size());
  while (end != std::string_view::npos && !is_end_line(rest, end)) {
    end = rest.find(kFakeModelEnd, end + 1);
  }
  return rest.substr(0, end);
}

}  // namespace berth::worker
