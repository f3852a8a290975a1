#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/uuid.h"
#include "supervisor/core/memory/planner.h"
#include "supervisor/residency/room.h"

// What others ask of the book and the plan.
namespace berth::residency {

const Room::Waiting* Room::waiting(const std::string& model) const {
  const auto at = waiting_.find(model);
  return at == waiting_.end() ? nullptr : &at->second;
}

bool Room::older_waits_for(const Uuid& instance, SteadyTime since) const {
  return std::ranges::any_of(waiting_, [&](const auto& one) {
    return one.second.since < since &&
           std::ranges::find(one.second.blockers, instance) != one.second.blockers.end();
  });
}

std::vector<core::DomainNow> Room::charged(const catalog::Model* model, const Uuid& without) const {
  std::vector<core::DomainNow> domains;
  if (!counts()) return domains;
  const core::Snapshot now = snapshot();
  core::DomainBytes taken;
  for (const core::Entry& entry : now.entries) {
    if (entry.id != without) taken += entry.charge;
  }
  std::vector<core::PlacementOption> options;
  if (model != nullptr) {
    const Demand demand{.model = std::make_shared<const catalog::Model>(*model),
                        .since = now.now,
                        .until = now.now + limits_.queue_timeout};
    options = wanted(demand, now).need.options;
  }
  for (core::DomainIndex i = 0; i < std::min(now.domains.size(), core::kMaxDomains); ++i) {
    const core::Domain& domain = now.domains[i];
    core::DomainNow& known = domains.emplace_back();
    known.domain = domain.id;
    const std::uint64_t used = domain.foreign + taken[i];
    if (!domain.lost) known.free = domain.total - std::min(domain.total, used);
    for (const core::PlacementOption& option : options) {
      if (option.bytes[i] == 0) continue;
      known.charge = std::min(known.charge.value_or(UINT64_MAX), option.bytes[i]);
    }
  }
  return domains;
}

Status Room::fits_together(const std::vector<std::shared_ptr<const catalog::Model>>& pinned,
                           const std::shared_ptr<const catalog::Model>& extra) const {
  if (!counts()) return {};
  core::Snapshot alone = snapshot();
  const std::vector<core::Entry> there = std::exchange(alone.entries, {});
  alone.holds.clear();
  alone.bank = {};
  for (core::Domain& domain : alone.domains) domain.foreign = 0;
  // Where it is, or the ways to place it.
  const auto need_of_pin = [&](const std::shared_ptr<const catalog::Model>& model) {
    const Demand demand{.model = model, .since = alone.now, .until = alone.now};
    core::Need need = wanted(demand, alone, !pinned.empty()).need;
    const auto resident = std::ranges::find_if(there, [&](const core::Entry& one) {
      return one.model == model->name && one.state <= core::EntryState::kReady;
    });
    if (resident != there.end()) need.options = {{.bytes = resident->charge}};
    return need;
  };
  for (const auto& model : pinned) {
    const core::Need need = need_of_pin(model);
    if (need.options.empty()) continue;
    const core::Decision decision = core::plan(alone, need);
    const auto* const fits = std::get_if<core::Fits>(&decision);
    if (fits == nullptr) continue;
    core::Entry& entry = alone.entries.emplace_back();
    entry.model = model->name;
    entry.pinned = true;
    entry.state = core::EntryState::kReady;
    entry.charge = fits->at.bytes;
  }
  const core::Need need = need_of_pin(extra);
  if (need.options.empty() && need.missing_devices.empty()) return {};
  const std::optional<core::Refuse> refuse = core::pin_refusal(alone, need);
  if (!refuse) return {};
  return fail(refusal(*extra, *refuse, alone));
}

}  // namespace berth::residency
