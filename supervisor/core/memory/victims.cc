#include "supervisor/core/memory/victims.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <tuple>
#include <utility>

namespace berth::core {
namespace {

bool loads(const Entry& entry) {
  return entry.state == EntryState::kStarting || entry.state == EntryState::kLoading;
}

// How long ago, never negative.
Duration age(SteadyTime since, SteadyTime now) {
  return std::max(now - since, Duration::zero());
}

// A ready one that no client uses and no idle work holds.
Judged judge_ready(const Entry& entry, const Need& need, SteadyTime now, const PlanPolicy& policy) {
  const Judged victim = {.standing = Standing::kVictim, .kind = VictimKind::kReady};
  if (entry.used_last_by_idle_work || policy.critical_pressure) return victim;
  const SteadyTime release = std::min(entry.idle_since, need.since) + policy.grace;
  if (release <= now) return victim;
  return {.standing = Standing::kGrace, .kind = VictimKind::kReady, .release = release};
}

// A load that no client waits for and no idle work holds (L5).
Judged judge_load(const Entry& entry, const Need& need, SteadyTime now, const PlanPolicy& policy) {
  if (!entry.abandoned_since) {
    if (!entry.used_last_by_idle_work) return {.standing = Standing::kLoading};
    return {.standing = Standing::kVictim, .kind = VictimKind::kIdleWork};
  }
  if (entry.torn_down_before || entry.model == need.model) return {.standing = Standing::kLoading};
  const SteadyTime release = *entry.abandoned_since + policy.retry_grace;
  return {.standing = release <= now ? Standing::kVictim : Standing::kGrace,
          .kind = VictimKind::kAbandonedLoad,
          .release = release <= now ? SteadyTime() : release};
}

// The place of a candidate in the order, before its cost counts.
int tier(const Candidate& candidate) {
  if (candidate.job != nullptr) return 0;
  switch (candidate.judged.standing) {
    case Standing::kVictim:
      return candidate.judged.kind == VictimKind::kIdleWork ? 1 : 2;
    case Standing::kGrace:
      return 3;
    case Standing::kInUse:
      return 4;
    case Standing::kLoading:
    case Standing::kLeaving:
    case Standing::kClosing:
    case Standing::kPinned:
    case Standing::kStuck:
      break;
  }
  return 5;
}

auto order_key(const Candidate& candidate) {
  const SteadyTime used = candidate.entry ? candidate.entry->last_used : candidate.job->since;
  const Uuid& id = candidate.entry ? candidate.entry->id : candidate.job->id;
  return std::tuple(tier(candidate), candidate.per_byte, used, id);
}

bool gives(const Candidate& candidate, const DomainBytes& missing) {
  for (DomainIndex i = 0; i < kMaxDomains; ++i) {
    if (missing[i] > 0 && candidate.bytes()[i] > 0) return true;
  }
  return false;
}

// Cost by byte in the domains that are short; `missing` says which.
double cost_per_byte(const Candidate& candidate, const DomainBytes& missing) {
  double bytes = 0;
  for (DomainIndex i = 0; i < kMaxDomains; ++i) {
    if (missing[i] > 0) bytes += static_cast<double>(candidate.bytes()[i]);
  }
  return bytes > 0 ? candidate.cost / bytes : 0;
}

}  // namespace

Judged judge(const Entry& entry, const Need& need, SteadyTime now, const PlanPolicy& policy) {
  switch (entry.state) {
    case EntryState::kLeaving:
      return {.standing = Standing::kLeaving};
    case EntryState::kClosing:
      return {.standing = Standing::kClosing};
    case EntryState::kStuck:
      return {.standing = Standing::kStuck};
    case EntryState::kStarting:
    case EntryState::kLoading:
    case EntryState::kReady:
      break;
  }
  if (entry.pinned) return {.standing = Standing::kPinned};
  if (entry.clients > 0 || need.caller == CallerClass::kIdle) {
    return {.standing = loads(entry) ? Standing::kLoading : Standing::kInUse};
  }
  if (entry.soft > 0) return {.standing = Standing::kVictim, .kind = VictimKind::kIdleWork};
  return loads(entry) ? judge_load(entry, need, now, policy)
                      : judge_ready(entry, need, now, policy);
}

double eviction_cost(const Entry& entry, SteadyTime now, const PlanPolicy& policy) {
  using Seconds = std::chrono::duration<double>;
  const double half = std::max(Seconds(policy.recency_half).count(), 1e-9);
  const double unused = Seconds(age(entry.last_used, now)).count();
  const double seconds = std::max(Seconds(entry.reload).count(), 0.0) +
                         std::max(Seconds(entry.prefill_lost).count(), 0.0);
  return seconds * half / (half + unused);
}

std::optional<std::vector<Candidate>> cover(std::vector<Candidate>& candidates,
                                            const DomainBytes& missing) {
  for (Candidate& candidate : candidates) candidate.per_byte = cost_per_byte(candidate, missing);
  std::ranges::sort(candidates, {}, order_key);
  std::vector<Candidate> chosen;
  DomainBytes given;
  DomainBytes lacking = missing;
  for (const Candidate& candidate : candidates) {
    if (lacking.empty()) break;
    if (!gives(candidate, lacking)) continue;
    chosen.push_back(candidate);
    given += candidate.bytes();
    lacking -= candidate.bytes();
  }
  if (!lacking.empty()) return std::nullopt;
  // The last one is needed: without it the ones before it did not suffice.
  for (std::size_t i = chosen.size(); i-- > 0;) {
    const DomainBytes without = given - chosen[i].bytes();
    if (!missing.fits(without)) continue;
    given = without;
    chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return chosen;
}

}  // namespace berth::core
