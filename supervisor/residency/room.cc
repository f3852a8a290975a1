#include "supervisor/residency/room.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "common/clock.h"
#include "common/event.h"
#include "common/uuid.h"
#include "supervisor/core/memory/planner.h"
#include "supervisor/core/mutation.h"
#include "supervisor/residency/room_pass.h"

namespace berth::residency {

using core::mutated;
using core::Mutation;

namespace {

// A file that was sound may have been written to since.
constexpr Duration kVerdictAge = std::chrono::seconds(2);

// What makes the dearest byte the cheapest one, for a mutation.
Duration inverse_cost(const core::Entry& entry) {
  constexpr double kMiB = 1 << 20U;
  const double mib = static_cast<double>(core::sum_of(entry.charge)) / kMiB;
  const double seconds = std::chrono::duration<double>(entry.reload).count();
  const std::chrono::duration<double> inverse(mib * mib / std::max(seconds, 1e-3) / 1e3);
  return std::chrono::duration_cast<Duration>(inverse);
}

// Whether everybody's plan is the same with either. How many use it, and when its idleness began or
// it was used last, counts only once nobody uses it any more.
bool alike(const core::Entry& a, const core::Entry& b) {
  return a.state == b.state && a.pinned == b.pinned && (a.clients > 0) == (b.clients > 0) &&
         a.soft == b.soft && a.used_last_by_idle_work == b.used_last_by_idle_work &&
         a.abandoned_since == b.abandoned_since && a.torn_down_before == b.torn_down_before &&
         (a.clients > 0 || (a.idle_since == b.idle_since && a.last_used == b.last_used));
}

}  // namespace

Room::Room(const Environment& environment, RoomHost& host, const Limits& limits)
    : environment_(environment),
      host_(host),
      limits_(limits),
      book_(environment, [this] { changed(); }) {}

Room::~Room() {
  *self_ = nullptr;
}

// --- when to plan

void Room::demanded() {
  if (counts()) post();
}

void Room::changed() {
  if (!waiting_.empty() || planning_) post();
}

void Room::changed(const Uuid& instance) {
  if (posted_ || (waiting_.empty() && !planning_)) return;
  const auto was = std::ranges::lower_bound(planned_, instance, {}, &core::Entry::id);
  if (planning_ || was == planned_.end() || was->id != instance) return post();
  core::Entry is{.id = instance};
  host_.describe(instance, is);
  if (!alike(*was, is)) post();
}

void Room::post() {
  if (std::exchange(posted_, true)) return;
  // Places that are given in this turn are answered first: nobody who is served waits for the
  // planner (M12).
  environment_.clock.post([self = self_] {
    if (*self == nullptr) return;
    (*self)->environment_.clock.post([self] {
      if (*self != nullptr) (*self)->plan_all();
    });
  });
}

void Room::plan_all() {
  posted_ = false;
  again_.reset();
  const std::map<std::string, Waiting> before = std::exchange(waiting_, {});
  std::vector<Demand> demands = host_.demands();
  waited_for_.clear();
  for (const Demand& demand : demands) waited_for_.insert(demand.model->name);
  std::erase_if(holds_, [&](const core::Hold& hold) {
    return !mutated(Mutation::kHoldNeverEnds) || waited_for_.contains(hold.model);
  });
  std::erase_if(checks_, [&](const auto& check) { return !waited_for_.contains(check.first); });
  std::erase_if(company_, [&](const std::string& model) { return !waited_for_.contains(model); });
  std::ranges::sort(demands, {}, [](const Demand& demand) {
    const bool idle = demand.caller == core::CallerClass::kIdle;
    return std::tuple(idle, demand.since, demand.model->name);
  });
  planning_ = true;
  RoomPass pass(*this, snapshot());
  for (const Demand& demand : demands) pass.decide(demand);
  const bool reopened = pass.reopen();
  pass.finish();
  planned_ = entries();
  if (pass.again() && !mutated(Mutation::kNeverReplanned)) {
    again_ = environment_.clock.sleep_until(*pass.again(), [this] {
      again_.reset();
      changed();
    });
  }
  planning_ = false;
  if (reopened) post();  // what was held for who waited for those is not, any more
  std::erase_if(waited_for_, [&](const std::string& model) { return !waiting_.contains(model); });
  tell_waits(before);
}

void Room::tell_waits(const std::map<std::string, Waiting>& before) {
  for (const auto& [model, waiting] : waiting_) {
    const auto was = before.find(model);
    if (was == before.end() || was->second.what != waiting.what) host_.on_room_wait(model);
  }
}

bool Room::checked(const Demand& demand) {
  const auto& check = environment_.memory_access.check;
  if (!check) return true;
  const std::string& model = demand.model->name;
  Check& one = checks_[model];
  const bool stale = one.passed && environment_.clock.now() - one.since > kVerdictAge;
  if (one.model == demand.model && !stale) return one.passed;
  one = {.model = demand.model};  // the catalogue may know another one by now
  check(demand.model, [self = self_, model, looked_at = demand.model](const Status& status) {
    Room* const room = *self;
    if (room == nullptr) return;
    const auto asked = room->checks_.find(model);
    if (asked == room->checks_.end() || asked->second.model != looked_at) return;
    if (asked->second.passed) return;
    if (status) {
      asked->second.passed = true;
      asked->second.since = room->environment_.clock.now();
    } else {
      room->checks_.erase(asked);
      room->host_.refuse_demand(model, status.error());
    }
    room->changed();
  });
  return false;
}

// --- the book

void Room::charge(const Uuid& instance, const std::string& model, const core::PlacementOption& at) {
  if (counts()) book_.charge(instance, model, at);
}

void Room::recharge(const Uuid& instance, const MeasuredCharge& charge) {
  if (book_.recharge(instance, charge)) changed();
}

void Room::note_stop(const Uuid& instance, pid_t pid, bool evicted) {
  book_.note_stop(instance, pid);
  const auto closed = closing_for_.extract(instance);
  const MemoryBook::Line* const line = book_.find(instance);
  if (closed.empty() || !evicted || line == nullptr) return;
  tell_eviction(closed.mapped(), {.id = instance, .model = line->model, .charge = line->at.bytes},
                "closing");
}

void Room::note_gone(const Uuid& instance, pid_t pid) {
  closing_for_.erase(instance);
  book_.note_gone(instance, pid);
}

void Room::tell_eviction(const Taker& taker, const core::Victim& victim, std::string_view cause) {
  ++counters_.evictions[std::string(cause)];
  environment_.events.emit_typed(
      events::ModelEvicted{.model = victim.model,
                           .instance = victim.id.to_string(),
                           .cause = std::string(cause),
                           .for_model = taker.model,
                           .for_whom = std::string(core::caller_name(taker.caller)),
                           .bytes = static_cast<std::int64_t>(core::sum_of(victim.charge))});
}

core::DomainBytes Room::charge_of(const Uuid& instance) const {
  const MemoryBook::Line* const line = book_.find(instance);
  return line == nullptr ? core::DomainBytes() : line->at.bytes;
}

std::optional<core::Charge> Room::measured(const Uuid& instance) const {
  const MemoryBook::Line* const line = book_.find(instance);
  return line == nullptr ? std::nullopt : line->measured;
}

std::vector<core::Entry> Room::entries() const {
  std::vector<core::Entry> all;
  all.reserve(book_.lines().size());
  for (const auto& [id, line] : book_.lines()) {
    core::Entry& entry = all.emplace_back();
    entry.id = id;
    entry.model = line.model;
    entry.charge = line.at.bytes;
    if (line.gone) {
      entry.state = core::EntryState::kLeaving;
    } else {
      host_.describe(id, entry);
    }
    if (mutated(Mutation::kVictimWithLease)) entry.clients = 0;
    if (mutated(Mutation::kPinnedEvicted)) entry.pinned = false;
    if (mutated(Mutation::kTornDownTwice)) entry.torn_down_before = false;
    if (mutated(Mutation::kDearestFirst)) entry.reload = inverse_cost(entry);
    if (mutated(Mutation::kLoadsNotCounted) &&
        (entry.state == core::EntryState::kStarting || entry.state == core::EntryState::kLoading)) {
      all.pop_back();
    }
  }
  return all;
}

core::Snapshot Room::snapshot() const {
  core::Snapshot snapshot;
  snapshot.now = environment_.clock.now();
  if (!counts()) return snapshot;
  snapshot.domains = environment_.memory_access.domains();
  const core::DomainBytes unreturned = book_.unreturned();
  for (core::DomainIndex i = 0; i < std::min(snapshot.domains.size(), core::kMaxDomains); ++i) {
    std::uint64_t& foreign = snapshot.domains[i].foreign;
    foreign -= std::min(foreign, unreturned[i]);
  }
  snapshot.entries = entries();
  snapshot.holds = holds_;
  snapshot.policy = limits_.plan;
  const auto& critical = environment_.memory_access.critical_pressure;
  if (critical) snapshot.policy.critical_pressure = critical();
  if (mutated(Mutation::kNoGrace)) snapshot.policy.grace = Duration::zero();
  if (mutated(Mutation::kNeverClosed)) snapshot.policy.max_wait = std::chrono::hours(1);
  if (environment_.memory_access.bank) {
    const BankUse bank = environment_.memory_access.bank();
    snapshot.bank = bank.held;
    snapshot.bank_floor = bank.floor;
    if (mutated(Mutation::kBankNotCounted)) snapshot.bank = {};
  }
  if (environment_.memory_access.jobs) snapshot.jobs = environment_.memory_access.jobs();
  return snapshot;
}

Room::Wanted Room::wanted(const Demand& demand, const core::Snapshot& snapshot,
                          bool company) const {
  Wanted wanted;
  core::Need& need = wanted.need;
  need.model = demand.model->name;
  need.caller = demand.caller;
  if (mutated(Mutation::kIdleWorkEvicts)) need.caller = core::CallerClass::kForeground;
  need.since = demand.since;
  need.until = demand.until;
  need.company = company || company_.contains(need.model) || host_.others_pinned(need.model) ||
                 waited_for_.size() > (waited_for_.contains(need.model) ? 1U : 0U);
  need.may_close = std::ranges::none_of(snapshot.entries, [&](const core::Entry& entry) {
    return entry.model == need.model && entry.state == core::EntryState::kClosing;
  });
  if (!environment_.memory_access.need) return wanted;
  MemoryNeed found = environment_.memory_access.need(*demand.model, snapshot, need);
  need.options = std::move(found.options);
  need.missing_devices = std::move(found.missing_devices);
  wanted.window = found.window;
  wanted.bound = found.bound;
  return wanted;
}

LaunchPlan Room::launch(const catalog::Model& model, const Wanted& wanted,
                        const core::PlacementOption& at) const {
  LaunchPlan plan{.at = at, .window = wanted.window, .bound = wanted.bound};
  if (const auto& terms = environment_.memory_access.terms; terms && !at.bytes.empty()) {
    plan.terms = terms(model, wanted.window, at.placement);
  }
  return plan;
}

}  // namespace berth::residency
