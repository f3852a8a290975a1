#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/event.h"

namespace berth::sim {

// Keeps every event that was emitted.
class SimEvents : public EventSink {
 public:
  explicit SimEvents(const Clock& clock) : clock_(clock) {}

  void emit(Event event) override;

  [[nodiscard]] const std::vector<Event>& all() const { return all_; }
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] std::size_t count(std::string_view name) const;
  // The last one of that name; null where there is none.
  [[nodiscard]] const Event* last(std::string_view name) const;
  // Called with each event as it comes.
  void on_event(std::function<void(const Event&)> hook) { hook_ = std::move(hook); }

  // A field as text; empty where it is not there.
  static std::string field(const Event& event, std::string_view name);

 private:
  const Clock& clock_;
  std::vector<Event> all_;
  std::function<void(const Event&)> hook_;
};

}  // namespace berth::sim
