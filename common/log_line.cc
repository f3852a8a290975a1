#include "common/log_line.h"

#include <cstdint>
#include <type_traits>
#include <utility>
#include <variant>

#include "common/json_text.h"
#include "common/wall_time.h"

namespace berth {
namespace {

constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kPlain = "\x1b[0m";

std::string_view level_colour(Level level) {
  switch (level) {
    case Level::kDebug:
      return kDim;
    case Level::kInfo:
      return "\x1b[32m";
    case Level::kWarning:
      return "\x1b[33m";
    case Level::kError:
      return "\x1b[1;31m";
  }
  return kPlain;
}

// Of syslog(3).
int priority(Level level) {
  switch (level) {
    case Level::kDebug:
      return 7;
    case Level::kInfo:
      return 6;
    case Level::kWarning:
      return 4;
    case Level::kError:
      return 3;
  }
  return 3;
}

std::string plain_value(const FieldValue& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::string>) {
          return held;
        } else if constexpr (std::is_same_v<Held, bool>) {
          return held ? "true" : "false";
        } else if constexpr (std::is_same_v<Held, double>) {
          std::string text;
          append_json_number(text, held);
          return text;
        } else {
          return std::to_string(held);
        }
      },
      value);
}

}  // namespace

std::string log_line(const Event& event, bool colours) {
  const std::string time = format_utc(event.time);
  const std::string_view level = level_name(event.level);
  const std::string rest = logfmt(event);
  std::string out;
  out.reserve(time.size() + level.size() + rest.size() + 32);
  if (!colours) {
    out.append(time).append(" ").append(level).append(" ").append(rest);
    return out;
  }
  out.append(kDim).append(time).append(kPlain).append(" ");
  out.append(level_colour(event.level)).append(level).append(kPlain).append(" ");
  out.append(kBold).append(event.name).append(kPlain).append(rest.substr(event.name.size()));
  return out;
}

std::vector<std::string> journal_fields(const Event& event) {
  std::vector<std::string> fields;
  fields.reserve(event.fields.size() + 3);
  fields.push_back("MESSAGE=" + logfmt(event));
  fields.push_back("PRIORITY=" + std::to_string(priority(event.level)));
  fields.push_back("BERTH_EVENT=" + std::string(event.name));
  for (const EventField& field : event.fields) {
    std::string text = "BERTH_";
    for (const char c : field.name) {
      text.push_back(c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c);
    }
    text.push_back('=');
    text += plain_value(field.value);
    fields.push_back(std::move(text));
  }
  return fields;
}

bool names_journal_stream(std::string_view variable, std::uint64_t device, std::uint64_t inode) {
  return variable == std::to_string(device) + ":" + std::to_string(inode);
}

}  // namespace berth
