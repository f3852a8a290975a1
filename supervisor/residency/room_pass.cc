#include "supervisor/residency/room_pass.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/event.h"
#include "supervisor/core/memory/planner.h"
#include "supervisor/core/mutation.h"

namespace berth::residency {
namespace {

using core::mutated;
using core::Mutation;

std::string_view cause_of(core::VictimKind kind) {
  switch (kind) {
    case core::VictimKind::kReady:
      return "idle";
    case core::VictimKind::kAbandonedLoad:
      return "abandoned_load";
    case core::VictimKind::kIdleWork:
      return "idle_work";
  }
  return "idle";
}

// Whether all that is charged, and this besides, is within the limits where this goes (spec 2,
// invariant 1).
[[maybe_unused]] bool within_limits(const core::Snapshot& snapshot,
                                    const core::PlacementOption& at) {
  core::DomainBytes sum = at.bytes;
  for (const core::Entry& entry : snapshot.entries) sum += entry.charge;
  for (core::DomainIndex i = 0; i < snapshot.domains.size(); ++i) {
    if (at.bytes[i] > 0 && sum[i] > snapshot.domains[i].limit()) return false;
  }
  return true;
}

core::Refuse too_soon(const core::Need& need) {
  return {.at = need.options.front(), .needed = need.options.front().bytes};
}

}  // namespace

void RoomPass::decide(const Demand& demand) {
  window_ = 0;
  const core::Need need = room_.need_of(demand, snapshot_, window_);
  if (need.options.empty() && need.missing_devices.empty()) return admit(demand, {});
  core::Decision decision = core::plan(snapshot_, need);
  if (mutated(Mutation::kRefusedTooSoon) && std::holds_alternative<core::Evict>(decision)) {
    decision = too_soon(need);
  }
  // Room that is made for it, until its waiters have gone or been answered: it is planned anew in
  // every pass.
  if (std::optional<core::Hold> hold = core::hold_of(need, decision);
      hold && !mutated(Mutation::kHoldIgnored)) {
    snapshot_.holds.push_back(*hold);
  }
  std::visit([&](const auto& what) { act(demand, what); }, decision);
  room_.holds_ = snapshot_.holds;
}

void RoomPass::act(const Demand& demand, const core::Fits& fits) {
  admit(demand, fits.at);
}

void RoomPass::admit(const Demand& demand, const core::PlacementOption& at) {
  if (!demand.may_start) {
    hold(demand, at);
    return wait(demand, core::park_name(core::ParkFor::kLeaving), {}, {});
  }
  assert(within_limits(snapshot_, at) || mutated(Mutation::kLoadsNotCounted));
  room_.checks_.erase(demand.model->name);
  LaunchPlan plan{.at = at, .window = window_};
  if (const auto& terms = room_.environment_.memory_access.terms; terms && !at.bytes.empty()) {
    plan.terms = terms(*demand.model, window_, at.placement);
  }
  room_.host_.admit(demand, plan);
  snapshot_.entries = room_.entries();
}

void RoomPass::act(const Demand& demand, const core::ShrinkBank& shrink) {
  if (!room_.checked(demand)) {
    hold(demand, shrink.at);
    return wait(demand, "check", {}, shrink.bank);
  }
  shrink_bank(shrink.bank);
  hold(demand, shrink.at);
  wait(demand, core::park_name(core::ParkFor::kLeaving), {}, shrink.bank);
}

void RoomPass::act(const Demand& demand, const core::Evict& evict) {
  if (!room_.checked(demand)) return wait(demand, "check", {}, evict.missing);
  shrink_bank(evict.bank);
  take_away(demand, evict.victims);
  std::vector<Uuid> leaving;
  for (const core::Victim& victim : evict.victims) leaving.push_back(victim.id);
  wait(demand, core::park_name(core::ParkFor::kLeaving), std::move(leaving), evict.missing);
}

void RoomPass::act(const Demand& demand, const core::PreEmpt& pre_empt) {
  act(demand, core::Evict{.at = pre_empt.at,
                          .victims = pre_empt.victims,
                          .bank = pre_empt.bank,
                          .missing = pre_empt.missing});
}

void RoomPass::act(const Demand& demand, const core::Park& park) {
  if (park.again) again_ = again_ ? std::min(*again_, *park.again) : *park.again;
  if (!park.close.empty() && !room_.checked(demand)) {
    return wait(demand, "check", park.blockers, park.missing);
  }
  for (const Uuid& instance : park.close) {
    const auto entry = std::ranges::find(snapshot_.entries, instance, &core::Entry::id);
    tell_eviction(demand, {.id = instance, .model = entry->model, .charge = entry->charge},
                  "closing");
    room_.host_.close(instance);
  }
  if (!park.close.empty()) snapshot_.entries = room_.entries();
  wait(demand, core::park_name(park.what), park.blockers, park.missing);
}

void RoomPass::act(const Demand& demand, const core::Refuse& refuse) {
  // What seems to be others' may be what ours have not given back; that is known within seconds.
  if (refuse.why == core::RefuseWhy::kForeign && room_.book_.proving()) {
    hold(demand, refuse.at);
    return wait(demand, core::park_name(core::ParkFor::kLeaving), {}, refuse.deficit);
  }
  const std::string& model = demand.model->name;
  const std::string why(core::refusal_name(refuse.why));
  ++room_.counters_.refusals[why];
  const core::DomainIndex at = refuse.domain;
  const bool known = at < snapshot_.domains.size();
  room_.environment_.events.emit_typed(
      events::ModelRefused{.model = model,
                           .why = why,
                           .domain = known ? snapshot_.domains[at].id : std::string(),
                           .needed_bytes = static_cast<std::int64_t>(refuse.needed[at]),
                           .available_bytes = static_cast<std::int64_t>(refuse.available[at]),
                           .deficit_bytes = static_cast<std::int64_t>(refuse.deficit[at])});
  room_.host_.refuse_demand(model, room_.refusal(*demand.model, refuse, snapshot_));
}

void RoomPass::shrink_bank(const core::DomainBytes& bytes) {
  const auto& shrink = room_.environment_.memory_access.shrink_bank;
  if (!bytes.empty() && shrink) shrink(bytes);
}

void RoomPass::take_away(const Demand& demand, const std::vector<core::Victim>& victims) {
  for (const core::Victim& victim : victims) {
    tell_eviction(demand, victim, cause_of(victim.kind));
    room_.host_.evict(victim);
  }
  snapshot_.entries = room_.entries();
}

void RoomPass::tell_eviction(const Demand& demand, const core::Victim& victim,
                             std::string_view cause) {
  ++room_.counters_.evictions[std::string(cause)];
  room_.environment_.events.emit_typed(
      events::ModelEvicted{.model = victim.model,
                           .instance = victim.id.to_string(),
                           .cause = std::string(cause),
                           .for_model = demand.model->name,
                           .for_whom = std::string(core::caller_name(demand.caller)),
                           .bytes = static_cast<std::int64_t>(core::sum_of(victim.charge))});
}

void RoomPass::wait(const Demand& demand, std::string_view what, std::vector<Uuid> blockers,
                    const core::DomainBytes& missing) {
  room_.waiting_[demand.model->name] = {.what = std::string(what),
                                        .blockers = std::move(blockers),
                                        .missing = missing,
                                        .since = demand.since};
}

void RoomPass::hold(const Demand& demand, const core::PlacementOption& at) {
  if (demand.caller == core::CallerClass::kIdle || mutated(Mutation::kHoldIgnored)) return;
  snapshot_.holds.push_back({.model = demand.model->name,
                             .bytes = at.bytes,
                             .since = demand.since,
                             .until = demand.until});
}

}  // namespace berth::residency
