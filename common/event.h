#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/clock.h"

namespace berth {

enum class Level : std::uint8_t { kDebug, kInfo, kWarning, kError };

// "debug", "info", "warning", "error"
std::string_view level_name(Level level);

using FieldValue = std::variant<std::string, std::int64_t, double, bool>;

struct EventField {
  std::string_view name;  // static storage, from the catalogue
  FieldValue value;
};

// One event, ready to be written, stored or sent. Names and levels come from common/events.def.
struct Event {
  std::uint64_t sequence = 0;  // 1, 2, … within one state directory; 0: not given yet
  WallTime time{};
  std::string_view name;  // static storage
  Level level = Level::kInfo;
  std::vector<EventField> fields;
};

// The typed events of the catalogue, one struct each: events::LoadReady{.model = …}.
namespace events {

using text = std::string;
using integer = std::int64_t;
using number = double;
using truth = bool;

#define F(type, name) type name{};
#define BERTH_EVENT(Type, dotted, level, doc, fields_) \
  struct Type {                                        \
    fields_                                            \
  };
#include "common/events.def"
#undef BERTH_EVENT
#undef F

#define F(type, name) out.push_back(EventField{#name, FieldValue(std::move(event.name))});
#define BERTH_EVENT(Type, dotted, level_, doc, fields_) \
  inline Event to_event(Type event) {                   \
    Event made;                                         \
    made.name = dotted;                                 \
    made.level = Level::level_;                         \
    auto& out = made.fields;                            \
    fields_;                                            \
    return made;                                        \
  }
#include "common/events.def"
#undef BERTH_EVENT
#undef F

}  // namespace events

// Where events go. emit() may be called from any thread and never blocks on I/O.
class EventSink {
 public:
  EventSink() = default;
  EventSink(const EventSink&) = delete;
  EventSink& operator=(const EventSink&) = delete;
  virtual ~EventSink() = default;

  // Takes an event whose sequence and time are not set yet.
  virtual void emit(Event event) = 0;

  // sink.emit_typed(events::LoadReady{…})
  template <typename Typed>
  void emit_typed(Typed typed) {
    emit(events::to_event(std::move(typed)));
  }
};

// One row of the catalogue, for docs and checks.
struct EventInfo {
  std::string_view name;
  Level level;
  std::string_view doc;
  std::vector<std::pair<std::string_view, std::string_view>> fields;  // name, type
};
const std::vector<EventInfo>& event_catalogue();

// `name key=value key="two words"`: keys and values of one event, without time and level. Values
// are sanitised to one line.
std::string logfmt(const Event& event);
// One JSON object in one line: {"time":"2026-…Z","level":"info","event":"load.ready",
// "sequence":7,"model":"…",…}, with the event's fields beside the fixed ones; `sequence` only where
// it is given.
std::string json_line(const Event& event);

}  // namespace berth
