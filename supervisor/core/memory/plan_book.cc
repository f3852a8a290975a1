#include "supervisor/core/memory/plan_book.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace berth::core {
namespace {

// Whether `hold` comes before `need` (M9). Everybody comes before idle work.
bool comes_first(const Hold& hold, const Need& need, SteadyTime now) {
  if (hold.model == need.model || hold.until <= now) return false;
  if (need.caller == CallerClass::kIdle) return true;
  return std::tie(hold.since, hold.model) < std::tie(need.since, need.model);
}

void add_domains(PlanBook& book) {
  const Domains& domains = book.snapshot->domains;
  for (std::size_t i = 0; i < std::min(domains.size(), kMaxDomains); ++i) {
    const auto at = static_cast<DomainIndex>(i);
    Domain alone = domains[i];
    book.limit[at] = alone.limit();
    alone.foreign = 0;
    book.hard_limit[at] = alone.limit();
  }
}

void add_entries(PlanBook& book) {
  const Snapshot& snapshot = *book.snapshot;
  book.judged.reserve(snapshot.entries.size());
  for (const Entry& entry : snapshot.entries) {
    const Judged judged = judge(entry, *book.need, snapshot.now, snapshot.policy);
    book.judged.push_back(judged);
    book.charged += entry.charge;
    if (judged.standing == Standing::kLeaving) book.leaving += entry.charge;
    if (judged.standing == Standing::kClosing) book.closing += entry.charge;
    if (judged.standing == Standing::kPinned) book.pinned += entry.charge;
    if (judged.standing == Standing::kStuck) book.stuck += entry.charge;
  }
  for (const IdleJob& job : snapshot.jobs) book.charged += job.extra;
}

void add_holds(PlanBook& book) {
  const Snapshot& snapshot = *book.snapshot;
  std::vector<const Hold*> older;
  for (const Hold& hold : snapshot.holds) {
    if (!comes_first(hold, *book.need, snapshot.now)) continue;
    older.push_back(&hold);
    book.hold_ends = book.hold_ends ? std::min(*book.hold_ends, hold.until) : hold.until;
  }
  book.freed_entry.assign(snapshot.entries.size(), false);
  if (older.empty()) return;
  std::ranges::sort(older, {}, [](const Hold* hold) { return std::tie(hold->since, hold->model); });
  book.oldest = older.front();
  for (const Hold* const hold : older) {
    book.held += hold->bytes;
    for (std::size_t i = 0; i < snapshot.entries.size(); ++i) {
      const Entry& entry = snapshot.entries[i];
      const bool takable = book.judged[i].standing <= Standing::kLoading;
      if (!takable || book.freed_entry[i]) continue;
      if (std::ranges::find(hold->frees, entry.id) == hold->frees.end()) continue;
      book.freed_entry[i] = true;
      book.freed += entry.charge;
    }
    book.turns.push_back({.held = book.held, .freed = book.freed});
  }
}

}  // namespace

PlanBook plan_book(const Snapshot& snapshot, const Need& need) {
  PlanBook book;
  book.snapshot = &snapshot;
  book.need = &need;
  book.bank = snapshot.bank;
  book.reclaimable =
      need.caller == CallerClass::kIdle ? snapshot.bank - snapshot.bank_floor : snapshot.bank;
  add_domains(book);
  add_entries(book);
  add_holds(book);
  return book;
}

std::vector<Candidate> PlanBook::candidates(Standing most, bool beside_holds) const {
  std::vector<Candidate> all;
  if (need->caller == CallerClass::kIdle && most < Standing::kInUse) return all;
  all.reserve(snapshot->entries.size() + snapshot->jobs.size());
  for (const IdleJob& job : snapshot->jobs) all.push_back({.job = &job});
  for (std::size_t i = 0; i < snapshot->entries.size(); ++i) {
    const Entry& entry = snapshot->entries[i];
    if (judged[i].standing > most || (beside_holds && freed_entry[i])) continue;
    const bool idle_work =
        judged[i].standing == Standing::kVictim && judged[i].kind == VictimKind::kIdleWork;
    all.push_back({.entry = &entry,
                   .judged = judged[i],
                   .cost = idle_work ? 0 : eviction_cost(entry, snapshot->now, snapshot->policy)});
  }
  return all;
}

DomainBytes missing_for(const PlanBook& book, const DomainBytes& bytes, const DomainBytes& gone,
                        const DomainBytes& held) {
  return only_where(book.charged - gone + held + book.bank + bytes - book.limit, bytes);
}

DomainBytes at_least(const DomainBytes& a, const DomainBytes& b) {
  DomainBytes larger;
  for (DomainIndex i = 0; i < kMaxDomains; ++i) larger[i] = std::max(a[i], b[i]);
  return larger;
}

DomainBytes at_most(const DomainBytes& a, const DomainBytes& b) {
  DomainBytes smaller;
  for (DomainIndex i = 0; i < kMaxDomains; ++i) smaller[i] = std::min(a[i], b[i]);
  return smaller;
}

}  // namespace berth::core
