#include "supervisor/cli/format/event_text.h"

#include <chrono>
#include <string_view>

#include "common/event.h"
#include "common/log_line.h"
#include "common/text.h"

namespace berth::cli {
namespace {

FieldValue value_of(const v1::EventField& field) {
  switch (field.value_case()) {
    case v1::EventField::kText:
      return field.text();
    case v1::EventField::kInteger:
      return field.integer();
    case v1::EventField::kNumber:
      return field.number();
    case v1::EventField::kTruth:
      return field.truth();
    case v1::EventField::VALUE_NOT_SET:
      break;
  }
  return std::string();
}

Level level_of(std::string_view name) {
  for (const Level level : {Level::kDebug, Level::kInfo, Level::kWarning, Level::kError}) {
    if (level_name(level) == name) return level;
  }
  return Level::kInfo;
}

}  // namespace

std::string event_line(const v1::Event& event, bool colours) {
  // The names are of other people's making here; an Event only borrows them.
  const std::string name = printable_line(event.name(), 128);
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(event.fields_size()));
  Event made;
  made.name = name;
  for (const v1::EventField& field : event.fields()) {
    names.push_back(printable_line(field.name(), 128));
    made.fields.push_back(EventField{names.back(), value_of(field)});
  }
  made.time = WallTime(std::chrono::milliseconds(event.time_unix_ms()));
  made.level = level_of(event.level());
  return log_line(made, colours);
}

}  // namespace berth::cli
