#include "supervisor/core/memory/plan_option.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "supervisor/core/memory/plan_refusal.h"

namespace berth::core {
namespace {

// What is missing for an option, by what is taken to have come back. Each is at least what is
// missing beside the older waiters, once their room is made (M9).
struct Missing {
  DomainBytes now{};      // nothing has
  DomainBytes leaving{};  // what is being stopped
  DomainBytes closing{};  // that, and what finishes its work
};

Missing missing_beside_holds(const PlanBook& book, const DomainBytes& bytes) {
  const DomainBytes coming = book.leaving + book.closing;
  // None of them is to wait longer for its own room.
  DomainBytes at_last;
  for (const PlanBook::Turn& turn : book.turns) {
    at_last = at_least(at_last, missing_for(book, bytes, coming + turn.freed, turn.held));
  }
  return {.now = at_least(at_last, missing_for(book, bytes, {}, {})),
          .leaving = at_least(at_last, missing_for(book, bytes, book.leaving, {})),
          .closing = at_least(at_last, missing_for(book, bytes, coming, {}))};
}

DomainBytes left_over(const PlanBook& book, const DomainBytes& bytes) {
  return only_where(book.limit - book.charged - book.bank - bytes, bytes);
}

Park park(const PlanBook& book, const PlacementOption& option, ParkFor what,
          const DomainBytes& missing) {
  return {.at = option,
          .what = what,
          .since = book.need->since,
          .until = book.need->until,
          .missing = missing};
}

// Entries of that standing which have some of what is missing.
std::vector<Uuid> that_have(const PlanBook& book, Standing standing, const DomainBytes& bytes) {
  std::vector<Uuid> ids;
  for (std::size_t i = 0; i < book.judged.size(); ++i) {
    const Entry& entry = book.snapshot->entries[i];
    if (book.judged[i].standing != standing) continue;
    if (!at_most(entry.charge, bytes).empty()) ids.push_back(entry.id);
  }
  std::ranges::sort(ids);
  return ids;
}

// There is room as soon as what goes already is gone, and then `chosen`.
Decision wait_for_room(const PlanBook& book, const PlacementOption& option, const Missing& missing,
                       const std::vector<Candidate>& chosen) {
  const bool leaving = missing.leaving.fits(book.reclaimable);
  const DomainBytes lacking = missing_for(book, option.bytes, {}, {});
  Park waits = park(book, option, leaving ? ParkFor::kLeaving : ParkFor::kClosing, lacking);
  waits.blockers = that_have(book, Standing::kLeaving, lacking);
  if (!leaving) {
    const auto closing = that_have(book, Standing::kClosing, lacking);
    waits.blockers.insert(waits.blockers.end(), closing.begin(), closing.end());
    std::ranges::sort(waits.blockers);
  }
  waits.takes = waits.blockers;
  for (const Candidate& candidate : chosen) {
    if (candidate.entry != nullptr) waits.takes.push_back(candidate.entry->id);
  }
  std::ranges::sort(waits.takes);
  return waits;
}

Decision make_room(const PlanBook& book, const PlacementOption& option,
                   const std::vector<Candidate>& chosen, const DomainBytes& missing) {
  PreEmpt all{.at = option, .missing = missing};
  DomainBytes given;
  for (const Candidate& candidate : chosen) {
    given += candidate.bytes();
    if (candidate.job != nullptr) {
      all.jobs.push_back(candidate.job->id);
      continue;
    }
    const Entry& entry = *candidate.entry;
    all.victims.push_back({.id = entry.id,
                           .model = entry.model,
                           .kind = candidate.judged.kind,
                           .charge = entry.charge,
                           .cost_seconds = candidate.cost});
  }
  const auto taken = [&](const Uuid& id) {
    return std::ranges::find(all.victims, id, &Victim::id) != all.victims.end();
  };
  for (const IdleJob& job : book.snapshot->jobs) {
    if (taken(job.instance)) all.jobs.push_back(job.id);
  }
  std::ranges::sort(all.jobs);
  all.jobs.erase(std::unique(all.jobs.begin(), all.jobs.end()), all.jobs.end());
  for (const IdleJob& job : book.snapshot->jobs) {
    if (std::ranges::binary_search(all.jobs, job.id)) {
      all.within = std::max(all.within, job.gives_way_within);
    }
  }
  all.bank = missing - given;
  if (!all.jobs.empty()) return all;
  return Evict{
      .at = option, .victims = std::move(all.victims), .bank = all.bank, .missing = all.missing};
}

// The first moment at which grace or a demand's age lets more be taken away.
std::optional<SteadyTime> next_release(const PlanBook& book, bool max_wait) {
  std::optional<SteadyTime> first;
  const auto take = [&](SteadyTime when) {
    if (when > book.snapshot->now) first = first ? std::min(*first, when) : when;
  };
  for (const Judged& judged : book.judged) {
    if (judged.standing == Standing::kGrace) take(judged.release);
  }
  if (max_wait) take(book.need->since + book.snapshot->policy.max_wait);
  return first;
}

Decision wait_for(const PlanBook& book, const PlacementOption& option, Standing most,
                  const std::vector<Candidate>& chosen, const DomainBytes& missing) {
  const bool grace = most == Standing::kGrace;
  Park waits = park(book, option, grace ? ParkFor::kGrace : ParkFor::kClients, missing);
  const bool waited = book.need->may_close &&
                      book.need->since + book.snapshot->policy.max_wait <= book.snapshot->now;
  for (const Candidate& candidate : chosen) {
    if (candidate.entry == nullptr) continue;
    waits.takes.push_back(candidate.entry->id);
    if (candidate.judged.standing == Standing::kVictim) continue;
    waits.blockers.push_back(candidate.entry->id);
    if (most == Standing::kInUse && waited && candidate.judged.standing == Standing::kInUse) {
      waits.close.push_back(candidate.entry->id);
    }
  }
  waits.again = next_release(book, !grace);
  std::ranges::sort(waits.takes);
  std::ranges::sort(waits.blockers);
  return waits;
}

// What is allowed to go does not suffice: waits for the first that would.
std::optional<Decision> wait_for_others(const PlanBook& book, const PlacementOption& option,
                                        const Missing& missing) {
  const DomainBytes lacking = missing.closing - book.reclaimable;
  for (const Standing most : {Standing::kGrace, Standing::kInUse, Standing::kLoading}) {
    auto candidates = book.candidates(most, true);
    if (auto chosen = cover(candidates, lacking)) {
      return wait_for(book, option, most, *chosen, missing.closing);
    }
  }
  if (book.oldest == nullptr) return std::nullopt;
  const DomainBytes alone = missing_for(book, option.bytes, book.leaving + book.closing, {});
  auto candidates = book.candidates(Standing::kLoading, false);
  if (!cover(candidates, alone - book.reclaimable)) return std::nullopt;
  Park waits = park(book, option, ParkFor::kOlder, missing.closing);
  waits.older = book.oldest->model;
  waits.again = book.hold_ends;
  return waits;
}

// Idle work waits for room that nobody had to make.
std::optional<Decision> wait_idly(const PlanBook& book, const PlacementOption& option,
                                  const DomainBytes& missing) {
  const DomainBytes stays = option.bytes + book.pinned + book.stuck;
  if (!lacks(stays, option.bytes, book.limit).empty()) return std::nullopt;
  return park(book, option, ParkFor::kIdleRoom, missing);
}

}  // namespace

Decision plan_option(const PlanBook& book, const PlacementOption& option) {
  const Missing missing = missing_beside_holds(book, option.bytes);
  if (missing.now.empty()) {
    return Fits{.at = option, .left = left_over(book, option.bytes)};
  }
  // What is being stopped comes back within seconds; kept sessions would be lost for good.
  if (!missing.leaving.empty() && missing.now.fits(book.reclaimable)) {
    return ShrinkBank{.at = option, .bank = missing.now};
  }
  if (missing.closing.fits(book.reclaimable)) return wait_for_room(book, option, missing, {});

  auto victims = book.candidates(Standing::kVictim, true);
  if (auto chosen = cover(victims, missing.closing - book.reclaimable)) {
    DomainBytes given;
    for (const Candidate& candidate : *chosen) given += candidate.bytes();
    // Nobody goes for a need that has to wait for another model's clients all the same.
    if (!missing.leaving.fits(given + book.reclaimable)) {
      return wait_for_room(book, option, missing, *chosen);
    }
    return make_room(book, option, *chosen, missing.leaving);
  }
  const bool idle = book.need->caller == CallerClass::kIdle;
  auto waits = idle ? wait_idly(book, option, missing.now) : wait_for_others(book, option, missing);
  return waits ? *std::move(waits) : refuse_option(book, option);
}

}  // namespace berth::core
