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
  for (const core::IdleJob& job : snapshot.jobs) sum += job.extra;
  for (core::DomainIndex i = 0; i < std::min(snapshot.domains.size(), core::kMaxDomains); ++i) {
    if (at.bytes[i] > 0 && sum[i] > snapshot.domains[i].limit()) return false;
  }
  return true;
}

core::Refuse too_soon(const core::Need& need) {
  return {.at = need.options.front(), .needed = need.options.front().bytes};
}

}  // namespace

RoomPass::RoomPass(Room& room, core::Snapshot snapshot)
    : room_(room), snapshot_(std::move(snapshot)) {
  for (const core::Entry& entry : snapshot_.entries) {
    if (entry.state == core::EntryState::kClosing) closing_.push_back(entry);
  }
}

void RoomPass::decide(const Demand& demand) {
  if (may_reopen(demand)) return put_off(demand);
  decide_now(demand);
}

bool RoomPass::may_reopen(const Demand& demand) const {
  return std::ranges::find(closing_, demand.model->name, &core::Entry::model) != closing_.end();
}

void RoomPass::put_off(const Demand& demand) {
  const core::Need need = room_.wanted(demand, snapshot_).need;
  waiting_.push_back(need);
  put_off_.push_back(demand);
  if (need.options.empty()) return;
  hold(need, core::plan(snapshot_, need));
}

void RoomPass::decide_now(const Demand& demand) {
  wanted_ = room_.wanted(demand, snapshot_);
  const core::Need& need = wanted_.need;
  if (wanted_.uncounted()) return admit(demand, {});
  core::Decision decision = core::plan(snapshot_, need);
  if (mutated(Mutation::kRefusedTooSoon) && std::holds_alternative<core::Evict>(decision)) {
    decision = too_soon(need);
  }
  // Room that is made for it, until its waiters have gone or been answered: it is planned anew in
  // every pass.
  const bool starts = std::holds_alternative<core::Fits>(decision) && demand.may_start;
  if (!starts) hold(need, decision);
  std::visit([&](const auto& what) { act(demand, what); }, decision);
  room_.holds_ = snapshot_.holds;
}

void RoomPass::act(const Demand& demand, const core::Fits& fits) {
  admit(demand, fits.at);
}

void RoomPass::admit(const Demand& demand, const core::PlacementOption& at) {
  if (!demand.may_start) return wait(demand, core::park_name(core::ParkFor::kLeaving), {}, {});
  assert(within_limits(snapshot_, at) || mutated(Mutation::kLoadsNotCounted));
  room_.checks_.erase(demand.model->name);
  room_.company_.erase(demand.model->name);
  room_.host_.admit(demand, room_.launch(*demand.model, wanted_, at));
  snapshot_.entries = room_.entries();
}

void RoomPass::act(const Demand& demand, const core::ShrinkBank& shrink) {
  if (!room_.checked(demand)) return wait(demand, kWaitsForCheck, {}, shrink.bank);
  shrink_bank(shrink.bank);
  wait(demand, core::park_name(core::ParkFor::kLeaving), {}, shrink.bank);
}

void RoomPass::act(const Demand& demand, const core::Evict& evict) {
  if (!room_.checked(demand)) return wait(demand, kWaitsForCheck, {}, evict.missing);
  shrink_bank(evict.bank);
  take_away(demand, evict.victims);
  std::vector<Uuid> leaving;
  for (const core::Victim& victim : evict.victims) leaving.push_back(victim.id);
  wait(demand, core::park_name(core::ParkFor::kLeaving), std::move(leaving), evict.missing);
}

void RoomPass::act(const Demand& demand, const core::PreEmpt& pre_empt) {
  if (!room_.checked(demand)) return wait(demand, kWaitsForCheck, {}, pre_empt.missing);
  shrink_bank(pre_empt.bank);
  tell_to_yield(pre_empt.jobs);
  std::vector<Uuid> blockers;
  for (const core::IdleJob& job : snapshot_.jobs) {
    if (!std::ranges::binary_search(pre_empt.jobs, job.id) || !may_take_its_time(job.id)) continue;
    plan_again_at(room_.yielding_.at(job.id));
    if (!job.instance.is_nil()) blockers.push_back(job.instance);
  }
  for (const core::Victim& victim : pre_empt.victims) blockers.push_back(victim.id);
  std::ranges::sort(blockers);
  blockers.erase(std::unique(blockers.begin(), blockers.end()), blockers.end());
  take_away(demand, takable(pre_empt));
  wait(demand, kWaitsForIdleWork, std::move(blockers), pre_empt.missing);
}

void RoomPass::tell_to_yield(const std::vector<Uuid>& jobs) {
  const auto& yield = room_.environment_.memory_access.yield_jobs;
  std::vector<Uuid> told;
  for (const core::IdleJob& job : snapshot_.jobs) {
    if (!std::ranges::binary_search(jobs, job.id)) continue;
    const Duration within =
        yield && !mutated(Mutation::kYieldNotAwaited) ? job.gives_way_within : Duration::zero();
    if (room_.yielding_.emplace(job.id, snapshot_.now + within).second) told.push_back(job.id);
  }
  if (yield && !told.empty() && !mutated(Mutation::kJobsNotTold)) yield(told);
}

bool RoomPass::may_take_its_time(const Uuid& job) const {
  const auto told = room_.yielding_.find(job);
  return told != room_.yielding_.end() && snapshot_.now < told->second;
}

std::vector<core::Victim> RoomPass::takable(const core::PreEmpt& pre_empt) const {
  std::vector<core::Victim> victims;
  for (const core::Victim& victim : pre_empt.victims) {
    const bool yields = std::ranges::any_of(snapshot_.jobs, [&](const core::IdleJob& job) {
      return job.instance == victim.id && may_take_its_time(job.id);
    });
    if (!yields) victims.push_back(victim);
  }
  // A job that does not yield loses its instance, and with that what it has beside it.
  for (const core::IdleJob& job : snapshot_.jobs) {
    if (!std::ranges::binary_search(pre_empt.jobs, job.id) || may_take_its_time(job.id)) continue;
    const auto entry = std::ranges::find(snapshot_.entries, job.instance, &core::Entry::id);
    if (entry == snapshot_.entries.end() || entry->clients > 0 || entry->pinned) continue;
    if (entry->state > core::EntryState::kReady) continue;
    if (std::ranges::find(victims, entry->id, &core::Victim::id) != victims.end()) continue;
    victims.push_back({.id = entry->id,
                       .model = entry->model,
                       .kind = core::VictimKind::kIdleWork,
                       .charge = entry->charge});
  }
  return victims;
}

void RoomPass::plan_again_at(SteadyTime when) {
  again_ = again_ ? std::min(*again_, when) : when;
}

void RoomPass::finish() {
  std::erase_if(room_.yielding_, [&](const auto& told) {
    return std::ranges::find(snapshot_.jobs, told.first, &core::IdleJob::id) ==
           snapshot_.jobs.end();
  });
  const auto& shrink = room_.environment_.memory_access.shrink_bank;
  if (reclaim_.empty() || !shrink || mutated(Mutation::kBankNeverShrunk)) return;
  shrink(snapshot_.bank - reclaim_);
}

bool RoomPass::reopen() {
  bool reopened = false;
  if (closing_.empty()) return reopened;
  const std::vector<Uuid> serve = servable();
  for (const core::Entry& entry : closing_) {
    const bool may = std::ranges::find(serve, entry.id) != serve.end();
    if (!may || mutated(Mutation::kNeverReopened) || !room_.host_.reopen(entry.id)) {
      take_turn(entry, serve);
      continue;
    }
    std::erase_if(put_off_,
                  [&](const Demand& demand) { return demand.model->name == entry.model; });
    drop_hold(entry.model);
    room_.closing_for_.erase(entry.id);
    reopened = true;
  }
  snapshot_.entries = room_.entries();
  for (const Demand& demand : put_off_) {
    drop_hold(demand.model->name);
    decide_now(demand);
  }
  room_.holds_ = snapshot_.holds;
  return reopened;
}

void RoomPass::drop_hold(const std::string& model) {
  std::erase_if(snapshot_.holds, [&](const core::Hold& hold) { return hold.model == model; });
}

std::vector<core::Closer> RoomPass::who_would_close(const std::vector<Uuid>& reopened) const {
  return core::who_would_close(snapshot_, waiting_, reopened, room_.book_.proving());
}

std::optional<core::Need> RoomPass::closes_anew(const std::vector<Uuid>& reopened,
                                                const std::vector<core::Closer>& anyway) const {
  for (core::Closer& one : who_would_close(reopened)) {
    const bool new_one = std::ranges::none_of(
        anyway, [&](const core::Closer& other) { return other.need.model == one.need.model; });
    if (one.again || new_one) return std::move(one.need);
  }
  return std::nullopt;
}

std::vector<Uuid> RoomPass::servable() const {
  // Who is about to close another one all the same is no reason.
  const std::vector<core::Closer> anyway = who_would_close({});
  std::vector<Uuid> all;
  std::vector<Uuid> some;
  for (const core::Entry& entry : closing_) {
    all.push_back(entry.id);
    if (entry.pinned) some.push_back(entry.id);
  }
  if (!closes_anew(all, anyway)) return all;
  for (const core::Entry& entry : closing_) {
    if (entry.pinned) continue;
    some.push_back(entry.id);
    if (closes_anew(some, anyway)) some.pop_back();
  }
  return some;
}

// It goes on closing: for the oldest for which it would be closed anew, which may not be the one
// for which it was. Who waits for its model comes after that one.
void RoomPass::take_turn(const core::Entry& closing, std::vector<Uuid> reopened) {
  const std::vector<core::Closer> anyway = who_would_close(reopened);
  reopened.push_back(closing.id);
  const std::optional<core::Need> need = closes_anew(reopened, anyway);
  if (!need) return;
  room_.closing_for_[closing.id] = {need->model, need->caller};
  room_.host_.closes_for(closing.id, need->since);
  for (Demand& demand : put_off_) {
    if (demand.model->name != closing.model) continue;
    demand.since = std::max(demand.since, need->since + Duration(1));
  }
}

void RoomPass::act(const Demand& demand, const core::Park& park) {
  if (park.again) plan_again_at(*park.again);
  if (!park.close.empty() && !room_.checked(demand)) {
    return wait(demand, kWaitsForCheck, park.blockers, park.missing);
  }
  for (const Uuid& instance : park.close) {
    const auto entry = std::ranges::find(snapshot_.entries, instance, &core::Entry::id);
    room_.environment_.events.emit_typed(
        events::ModelClosing{.model = entry->model,
                             .instance = instance.to_string(),
                             .for_model = demand.model->name,
                             .for_whom = std::string(core::caller_name(demand.caller)),
                             .bytes = static_cast<std::int64_t>(core::sum_of(entry->charge))});
    room_.closing_for_[instance] = {demand.model->name, demand.caller};
    room_.host_.close(instance);
    room_.host_.closes_for(instance, demand.since);
  }
  if (!park.close.empty()) {
    room_.company_.insert(demand.model->name);
    snapshot_.entries = room_.entries();
  }
  wait(demand, core::park_name(park.what), park.blockers, park.missing);
}

void RoomPass::act(const Demand& demand, const core::Refuse& refuse) {
  // What seems to be others' may be what ours have not given back; that is known within seconds.
  if (refuse.why == core::RefuseWhy::kForeign && room_.book_.proving()) {
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

// What each of them lacks counts the room that is held for those before it.
void RoomPass::shrink_bank(const core::DomainBytes& bytes) {
  for (core::DomainIndex i = 0; i < core::kMaxDomains; ++i) {
    reclaim_[i] = std::max(reclaim_[i], bytes[i]);
  }
}

void RoomPass::take_away(const Demand& demand, const std::vector<core::Victim>& victims) {
  if (!victims.empty()) room_.company_.insert(demand.model->name);
  for (const core::Victim& victim : victims) {
    room_.tell_eviction({demand.model->name, demand.caller}, victim, cause_of(victim.kind));
    room_.host_.evict(victim);
  }
  snapshot_.entries = room_.entries();
}

void RoomPass::wait(const Demand& demand, std::string_view what, std::vector<Uuid> blockers,
                    const core::DomainBytes& missing) {
  if (!closing_.empty()) waiting_.push_back(wanted_.need);
  room_.waiting_[demand.model->name] = {.what = std::string(what),
                                        .blockers = std::move(blockers),
                                        .missing = missing,
                                        .since = demand.since};
}

void RoomPass::hold(const core::Need& need, const core::Decision& decision) {
  const auto hold = core::hold_of_waiting(need, decision, room_.book_.proving());
  if (hold && !mutated(Mutation::kHoldIgnored)) snapshot_.holds.push_back(*hold);
}

}  // namespace berth::residency
