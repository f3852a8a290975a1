#pragma once

#include <string>

#include "supervisor/store/store.h"

namespace berth::testing {

inline WallTime at_ms(std::int64_t ms) {
  return WallTime(std::chrono::milliseconds(ms));
}

inline store::LoadRecord load_record(const std::string& id, const std::string& model,
                                     std::int64_t started_ms) {
  store::LoadRecord record;
  record.id = id;
  record.model = model;
  record.started = at_ms(started_ms);
  record.outcome = "loading";
  return record;
}

inline Event numbered_event(std::uint64_t sequence, std::int64_t time_ms,
                            std::string_view name = "load.ready") {
  Event event;
  event.sequence = sequence;
  event.time = at_ms(time_ms);
  event.name = name;
  event.level = Level::kInfo;
  event.fields = {{"model", std::string("demo")}, {"took_ms", std::int64_t{12}}};
  return event;
}

}  // namespace berth::testing
