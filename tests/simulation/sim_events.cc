#include "tests/simulation/sim_events.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "common/event.h"

namespace berth::sim {

void SimEvents::emit(Event event) {
  event.sequence = all_.size() + 1;
  event.time = clock_.wall_now();
  all_.push_back(std::move(event));
  if (hook_) hook_(Event(all_.back()));
}

std::vector<std::string> SimEvents::names() const {
  std::vector<std::string> names;
  names.reserve(all_.size());
  for (const Event& event : all_) names.emplace_back(event.name);
  return names;
}

std::size_t SimEvents::count(std::string_view name) const {
  return static_cast<std::size_t>(std::ranges::count(all_, name, &Event::name));
}

const Event* SimEvents::last(std::string_view name) const {
  for (auto at = all_.rbegin(); at != all_.rend(); ++at) {
    if (at->name == name) return &*at;
  }
  return nullptr;
}

std::string SimEvents::field(const Event& event, std::string_view name) {
  const auto at = std::ranges::find(event.fields, name, &EventField::name);
  if (at == event.fields.end()) return {};
  return std::visit(
      [](const auto& value) -> std::string {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::string>) {
          return value;
        } else if constexpr (std::is_same_v<Value, bool>) {
          return value ? "true" : "false";
        } else {
          return std::to_string(value);
        }
      },
      at->value);
}

}  // namespace berth::sim
