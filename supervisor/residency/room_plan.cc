#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "supervisor/core/memory/planner.h"
#include "supervisor/residency/room.h"

// What would be done, and what is waited for: reading, by the functions that make room.
namespace berth::residency {

PlanReport Room::plan(const catalog::Model& model, bool anew) const {
  PlanReport report;
  report.snapshot = snapshot();
  if (anew) {
    std::erase_if(report.snapshot.entries,
                  [&](const core::Entry& entry) { return entry.model == model.name; });
  }
  if (!counts()) return report;
  const Waiting* const waits = waiting(model.name);
  const SteadyTime now = report.snapshot.now;
  const std::optional<SteadyTime> carried = host_.carried(model.name);
  const Demand demand{.model = std::make_shared<const catalog::Model>(model),
                      .since = waits == nullptr ? carried.value_or(now) : waits->since,
                      .until = now + limits_.queue_timeout};
  const Wanted found = wanted(demand, report.snapshot);
  report.counted = !found.uncounted();
  report.launch = launch(model, found, {});
  report.need = found.need;
  if (!report.counted) return report;
  report.decision = core::plan(report.snapshot, report.need);
  const core::PlacementOption at =
      std::visit([](const auto& it) { return it.at; }, report.decision);
  report.launch = launch(model, found, at);
  if (const auto* const refuse = std::get_if<core::Refuse>(&report.decision)) {
    report.refusal = refusal(model, *refuse, report.snapshot);
  }
  return report;
}

std::vector<RoomWait> Room::waits() const {
  std::vector<RoomWait> all;
  for (const auto& [model, waiting] : waiting_) {
    RoomWait& one = all.emplace_back();
    one.model = model;
    one.what = waiting.what;
    for (const Uuid& blocker : waiting.blockers) one.blockers.push_back(blocker.to_string());
    one.missing = waiting.missing;
    one.since = waiting.since;
    for (const core::Hold& hold : holds_) {
      if (hold.model == model) one.held = hold.bytes;
    }
  }
  std::ranges::sort(all, {}, [](const RoomWait& one) { return std::tie(one.since, one.model); });
  return all;
}

}  // namespace berth::residency
