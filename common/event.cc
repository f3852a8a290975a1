#include "common/event.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <type_traits>

#include "common/json_text.h"
#include "common/text.h"
#include "common/wall_time.h"

namespace berth {
namespace {

// Of one value in a logfmt line; events are short by design, this bounds what a hostile name does.
constexpr std::size_t kMaxValueBytes = 4096;

bool needs_quotes(std::string_view value) {
  return value.empty() || value.find_first_of(" \"=\\") != std::string_view::npos;
}

void append_logfmt_text(std::string& out, std::string_view text) {
  const std::string value = printable_line(text, kMaxValueBytes);
  if (!needs_quotes(value)) {
    out += value;
    return;
  }
  out.push_back('"');
  for (const char c : value) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  out.push_back('"');
}

template <typename Text>
void append_value(std::string& out, const FieldValue& value, Text append_text) {
  std::visit(
      [&](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::string>) {
          append_text(out, held);
        } else if constexpr (std::is_same_v<Held, bool>) {
          out += held ? "true" : "false";
        } else if constexpr (std::is_same_v<Held, double>) {
          append_json_number(out, held);
        } else {
          out += std::to_string(held);
        }
      },
      value);
}

}  // namespace

std::string_view level_name(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarning:
      return "warning";
    case Level::kError:
      return "error";
  }
  return "error";
}

const std::vector<EventInfo>& event_catalogue() {
  // Made on first use: only docs and checks ask for it.
  static const std::vector<EventInfo> catalogue = {
#define F(type, name) {#name, #type},
#define BERTH_EVENT(Type, dotted, level_, doc, fields_) \
  EventInfo{dotted, Level::level_, doc, {fields_}},
#include "common/events.def"
#undef BERTH_EVENT
#undef F
  };
  return catalogue;
}

std::string logfmt(const Event& event) {
  std::string out(event.name);
  for (const EventField& field : event.fields) {
    out.push_back(' ');
    out += field.name;
    out.push_back('=');
    append_value(out, field.value, append_logfmt_text);
  }
  return out;
}

std::string json_line(const Event& event) {
  std::string out = R"({"time":")";
  out += format_utc(event.time);
  out += R"(","level":")";
  out += level_name(event.level);
  out += R"(","event":)";
  append_json_string(out, event.name);
  if (event.sequence != 0) out += R"(,"sequence":)" + std::to_string(event.sequence);
  for (const EventField& field : event.fields) {
    out.push_back(',');
    append_json_string(out, field.name);
    out.push_back(':');
    append_value(out, field.value, append_json_string);
  }
  out.push_back('}');
  return out;
}

}  // namespace berth
