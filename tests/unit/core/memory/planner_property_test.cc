#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "supervisor/core/memory/planner.h"
#include "tests/unit/core/memory/plans.h"
#include "tests/unit/core/memory/some_plan.h"

// What the planner answers for any small machine is checked against the rules, read here once more
// and in another way.
namespace berth::core {
namespace {

using testing::any;
using testing::kDomains;
using testing::kNow;
using testing::Seen;

// M8, L5, I3 and I4 read once more: who may go for a need.
bool may_go(const Entry& entry, const Need& need, const PlanPolicy& policy) {
  if (need.caller == CallerClass::kIdle || entry.pinned || entry.clients > 0) return false;
  const bool loads = entry.state == EntryState::kStarting || entry.state == EntryState::kLoading;
  if (!loads && entry.state != EntryState::kReady) return false;
  if (entry.soft > 0) return true;
  if (loads) {
    if (!entry.abandoned_since) return entry.used_last_by_idle_work;
    return !entry.torn_down_before && entry.model != need.model &&
           *entry.abandoned_since + policy.retry_grace <= kNow;
  }
  return entry.used_last_by_idle_work || policy.critical_pressure ||
         entry.idle_since + policy.grace <= kNow || need.since + policy.grace <= kNow;
}

bool older(const Hold& hold, const Need& need) {
  if (hold.model == need.model || hold.until <= kNow) return false;
  if (need.caller == CallerClass::kIdle || hold.since < need.since) return true;
  return hold.since == need.since && hold.model < need.model;
}

// What of the entries is taken to be gone.
enum class Gone { kNothing, kLeaving, kClosing };

bool is_gone(const Entry& entry, Gone gone) {
  return (entry.state == EntryState::kLeaving && gone != Gone::kNothing) ||
         (entry.state == EntryState::kClosing && gone == Gone::kClosing);
}

bool comes_back(const Entry& entry) {
  return entry.state == EntryState::kLeaving || entry.state == EntryState::kClosing;
}

// What is used of a domain once `taken` has gone and the bank gave `bank`.
struct After {
  const Snapshot& snapshot;
  const Need& need;
  std::set<Uuid> taken{};
  DomainBytes bank{};

  [[nodiscard]] std::uint64_t used(DomainIndex domain, Gone gone, bool beside_holds) const {
    std::set<Uuid> frees;
    std::uint64_t sum = snapshot.bank[domain] - bank[domain];
    for (const Hold& hold : snapshot.holds) {
      if (!beside_holds || !older(hold, need)) continue;
      sum += hold.bytes[domain];
      frees.insert(hold.frees.begin(), hold.frees.end());
    }
    for (const Entry& entry : snapshot.entries) {
      const bool stays = entry.state == EntryState::kStuck || (entry.pinned && !comes_back(entry));
      if (taken.contains(entry.id) || is_gone(entry, gone)) continue;
      if (!stays && frees.contains(entry.id)) continue;
      sum += entry.charge[domain];
    }
    for (const IdleJob& job : snapshot.jobs) {
      if (!taken.contains(job.id)) sum += job.extra[domain];
    }
    return sum;
  }
  // Within every limit that `bytes` touches, with the older waiters' room and without.
  [[nodiscard]] bool holds(const DomainBytes& bytes, Gone gone) const {
    for (DomainIndex d = 0; d < kMaxDomains; ++d) {
      if (bytes[d] == 0) continue;
      const std::uint64_t limit = d < kDomains ? snapshot.domains[d].limit() : 0;
      if (used(d, gone, false) + bytes[d] > limit) return false;
      if (used(d, Gone::kClosing, true) + bytes[d] > limit) return false;
    }
    return true;
  }
};

DomainBytes reclaimable(const Snapshot& snapshot, const Need& need) {
  return need.caller == CallerClass::kIdle ? snapshot.bank - snapshot.bank_floor : snapshot.bank;
}

void check_room(const Seen& seen, const PlacementOption& at, const std::vector<Victim>& victims,
                const std::vector<Uuid>& jobs, const DomainBytes& bank) {
  After after{.snapshot = seen.snapshot, .need = seen.need, .bank = bank};
  RC_ASSERT(bank.fits(reclaimable(seen.snapshot, seen.need)));
  for (const Victim& victim : victims) {
    const auto entry = std::ranges::find(seen.snapshot.entries, victim.id, &Entry::id);
    RC_ASSERT(entry != seen.snapshot.entries.end());
    RC_ASSERT(may_go(*entry, seen.need, seen.snapshot.policy));
    RC_ASSERT(after.taken.insert(victim.id).second);
    for (const IdleJob& job : seen.snapshot.jobs) {
      if (job.instance == victim.id) RC_ASSERT(std::ranges::count(jobs, job.id) == 1);
    }
  }
  after.taken.insert(jobs.begin(), jobs.end());
  RC_ASSERT(after.holds(at.bytes, Gone::kLeaving));
  // None of them is superfluous, whatever the bank gives.
  After fewer{
      .snapshot = seen.snapshot, .need = seen.need, .bank = reclaimable(seen.snapshot, seen.need)};
  for (const Victim& victim : victims) {
    fewer.taken = after.taken;
    fewer.taken.erase(victim.id);
    for (const IdleJob& job : seen.snapshot.jobs) {
      // What a job has beside its instance counts with the instance that it holds.
      if (job.instance == victim.id) return;
    }
    RC_ASSERT(!fewer.holds(at.bytes, Gone::kLeaving));
  }
}

RC_GTEST_PROP(PlannerProperty, M7_NeverOverALimitAndNeverAVictimThatMayNotGo, ()) {
  const Seen seen;
  RC_TAG(std::string(decision_name(seen.decision)));
  if (const auto* fits = std::get_if<Fits>(&seen.decision)) {
    RC_ASSERT((
        After{.snapshot = seen.snapshot, .need = seen.need}.holds(fits->at.bytes, Gone::kNothing)));
  }
  if (const auto* shrink = std::get_if<ShrinkBank>(&seen.decision)) {
    RC_ASSERT(shrink->bank.fits(reclaimable(seen.snapshot, seen.need)));
    RC_ASSERT((After{.snapshot = seen.snapshot, .need = seen.need, .bank = shrink->bank}.holds(
        shrink->at.bytes, Gone::kNothing)));
  }
  if (const auto* evict = std::get_if<Evict>(&seen.decision)) {
    RC_ASSERT(!evict->victims.empty());
    check_room(seen, evict->at, evict->victims, {}, evict->bank);
  }
  if (const auto* pre_empt = std::get_if<PreEmpt>(&seen.decision)) {
    RC_ASSERT(!pre_empt->jobs.empty());
    check_room(seen, pre_empt->at, pre_empt->victims, pre_empt->jobs, pre_empt->bank);
  }
}

RC_GTEST_PROP(PlannerProperty, M12_OnlyReadyModelsThatClientsUseAreClosedAfterMaxWait, ()) {
  const Seen seen;
  const auto* park = std::get_if<Park>(&seen.decision);
  if (park == nullptr) return;
  RC_ASSERT(park->until <= seen.need.until);
  if (park->again) RC_ASSERT(*park->again > kNow);
  if (!park->close.empty()) {
    RC_ASSERT(seen.need.since + seen.snapshot.policy.max_wait <= kNow);
    RC_ASSERT(seen.need.caller != CallerClass::kIdle);
  }
  for (const Uuid& id : park->close) {
    const auto entry = std::ranges::find(seen.snapshot.entries, id, &Entry::id);
    RC_ASSERT(entry != seen.snapshot.entries.end());
    RC_ASSERT(entry->state == EntryState::kReady);
    RC_ASSERT(entry->clients > 0);
    RC_ASSERT(!entry->pinned);
  }
}

RC_GTEST_PROP(PlannerProperty, M7_TheOrderOfTheBookDoesNotMatter, ()) {
  Seen seen;
  const auto turns = static_cast<std::size_t>(any(0, 6));
  const auto mix = [&](auto& rows) {
    if (rows.empty()) return;
    std::ranges::reverse(rows);
    const auto middle = static_cast<std::ptrdiff_t>(turns % rows.size());
    std::rotate(rows.begin(), rows.begin() + middle, rows.end());
  };
  mix(seen.snapshot.entries);
  mix(seen.snapshot.holds);
  mix(seen.snapshot.jobs);
  RC_ASSERT(plan(seen.snapshot, seen.need) == seen.decision);
}

// At once < waits or makes room < refused.
int worth(const Decision& decision) {
  if (std::holds_alternative<Fits>(decision)) return 3;
  if (std::holds_alternative<ShrinkBank>(decision)) return 2;
  return std::holds_alternative<Refuse>(decision) ? 0 : 1;
}

RC_GTEST_PROP(PlannerProperty, M7_MoreBudgetNeverMakesTheAnswerWorse, ()) {
  Seen seen;
  const int before = worth(seen.decision);
  for (Domain& domain : seen.snapshot.domains) {
    const auto more = static_cast<std::uint64_t>(any(0, 20));
    domain.budget += more;
    domain.total += more;
  }
  const int after = worth(plan(seen.snapshot, seen.need));
  RC_ASSERT(before == 0 || after > 0);
  RC_ASSERT(before < 3 || after == 3);
}

// Whether some set of those that may go, and the bank, would do for one of the options.
bool some_set_does(const Seen& seen, std::size_t most) {
  std::vector<Uuid> who;
  for (const Entry& entry : seen.snapshot.entries) {
    if (!may_go(entry, seen.need, seen.snapshot.policy)) continue;
    // An older waiter counts on it.
    bool taken = false;
    for (const Hold& hold : seen.snapshot.holds) {
      taken = taken || (older(hold, seen.need) && std::ranges::count(hold.frees, entry.id) > 0);
    }
    if (!taken) who.push_back(entry.id);
  }
  if (seen.need.caller != CallerClass::kIdle) {
    for (const IdleJob& job : seen.snapshot.jobs) who.push_back(job.id);
  }
  for (std::uint32_t set = 0; set < (1U << who.size()); ++set) {
    After after{.snapshot = seen.snapshot,
                .need = seen.need,
                .bank = reclaimable(seen.snapshot, seen.need)};
    for (std::size_t i = 0; i < who.size(); ++i) {
      if ((set >> i & 1U) != 0) after.taken.insert(who[i]);
    }
    if (after.taken.size() > most) continue;
    for (const PlacementOption& option : seen.need.options) {
      if (after.holds(option.bytes, Gone::kClosing)) return true;
    }
  }
  return false;
}

RC_GTEST_PROP(PlannerProperty, M8_WhereSomeAllowedSetWouldDoItIsFound, ()) {
  const Seen seen;
  const bool made = std::holds_alternative<Evict>(seen.decision) ||
                    std::holds_alternative<PreEmpt>(seen.decision);
  const auto* park = std::get_if<Park>(&seen.decision);
  const bool coming =
      park != nullptr && (park->what == ParkFor::kLeaving || park->what == ParkFor::kClosing);
  const bool at_once = worth(seen.decision) >= 2;
  RC_ASSERT(some_set_does(seen, seen.snapshot.entries.size() + 1) == (made || coming || at_once));
  // Nobody is evicted where nobody has to be.
  // A model that still works for its clients is no reason to wait where another option has a
  // victim.
  const bool closing =
      std::ranges::count(seen.snapshot.entries, EntryState::kClosing, &Entry::state) > 0;
  if (made && !closing) RC_ASSERT(!some_set_does(seen, 0));
}

RC_GTEST_PROP(PlannerProperty, M14_ARefusalIsTrue, ()) {
  const Seen seen;
  const auto* refuse = std::get_if<Refuse>(&seen.decision);
  if (refuse == nullptr) return;
  // Not even with everybody gone that is neither pinned nor stuck, and no older waiter.
  for (const PlacementOption& option : seen.need.options) {
    bool fits = true;
    for (DomainIndex d = 0; d < kDomains; ++d) {
      if (option.bytes[d] == 0) continue;
      std::uint64_t stays = 0;
      for (const Entry& entry : seen.snapshot.entries) {
        const bool pinned = entry.pinned && !comes_back(entry);
        if (pinned || entry.state == EntryState::kStuck) stays += entry.charge[d];
      }
      fits = fits && stays + option.bytes[d] <= seen.snapshot.domains[d].limit();
    }
    RC_ASSERT(!fits);
  }
  RC_ASSERT(refuse->why == RefuseWhy::kDeviceMissing || !refuse->deficit.empty());
  RC_ASSERT(refuse->blockers.size() == refuse->models.size());
}

}  // namespace
}  // namespace berth::core
