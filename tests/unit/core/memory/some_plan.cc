#include "tests/unit/core/memory/some_plan.h"

#include <rapidcheck.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <ostream>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "supervisor/core/memory/planner.h"
#include "tests/unit/core/memory/plans.h"

namespace berth::core::testing {
namespace {

using std::chrono::milliseconds;

template <typename T>
T pick(std::initializer_list<T> values) {
  return *rc::gen::elementOf(std::vector<T>(values));
}

}  // namespace

// Of the whole range, also in the first cases of a run (as inRange() is not).
int any(int low, int high) {
  std::vector<int> all(static_cast<std::size_t>(high - low + 1));
  std::iota(all.begin(), all.end(), low);
  return *rc::gen::elementOf(all);
}

bool one_in(int number) {
  return any(1, number) == number;
}

namespace {

SteadyTime some_time_ago() {
  return ago(seconds(any(0, 15)));
}

DomainBytes some_bytes(int most) {
  DomainBytes bytes;
  for (DomainIndex i = 0; i < kDomains; ++i) {
    if (one_in(2)) bytes[i] = static_cast<std::uint64_t>(any(0, most));
  }
  return bytes;
}

Entry some_entry(unsigned id) {
  Entry entry{.id = numbered(id),
              .model = std::string(1, static_cast<char>('a' + any(0, 5))),
              .state = static_cast<EntryState>(any(0, static_cast<int>(EntryState::kStuck))),
              .charge = some_bytes(15)};
  if (one_in(2)) entry.state = EntryState::kReady;
  entry.pinned = one_in(6);
  entry.clients = one_in(3) ? 1 : 0;
  entry.soft = one_in(5) ? 1 : 0;
  entry.idle_since = some_time_ago();
  entry.last_used = some_time_ago();
  entry.used_last_by_idle_work = one_in(5);
  if (one_in(2)) entry.abandoned_since = some_time_ago();
  entry.torn_down_before = one_in(4);
  entry.reload = milliseconds(any(0, 4) * 500);
  entry.prefill_lost = milliseconds(any(0, 2) * 500);
  return entry;
}

}  // namespace

Snapshot some_snapshot() {
  Snapshot snapshot;
  snapshot.now = kNow;
  for (std::size_t i = 0; i < kDomains; ++i) {
    Domain domain = domain_of("d" + std::to_string(i), static_cast<std::uint64_t>(any(16, 50)));
    domain.total = 60;
    domain.foreign = one_in(3) ? static_cast<std::uint64_t>(any(0, 50)) : 0;
    domain.lost = one_in(25);
    snapshot.domains.push_back(domain);
  }
  const int entries = std::max(any(0, 7), any(0, 7));
  for (unsigned i = 1; i <= static_cast<unsigned>(entries); ++i) {
    snapshot.entries.push_back(some_entry(i));
  }
  const int holds = any(0, 2);
  for (int i = 0; i < holds; ++i) {
    Hold hold{.model = std::string(1, static_cast<char>('e' + i)),
              .bytes = some_bytes(12),
              .since = some_time_ago(),
              .until = kNow + seconds(any(0, 5))};
    for (const Entry& entry : snapshot.entries) {
      if (one_in(3)) hold.frees.push_back(entry.id);
    }
    snapshot.holds.push_back(hold);
  }
  if (one_in(3)) {
    IdleJob job{
        .id = numbered(100), .model = "a", .extra = some_bytes(6), .since = some_time_ago()};
    if (entries > 0) {
      Entry& held = snapshot.entries[static_cast<std::size_t>(any(0, entries - 1))];
      job.instance = held.id;
      held.soft = 1;
    }
    snapshot.jobs.push_back(job);
  }
  if (one_in(2)) snapshot.bank = some_bytes(8);
  snapshot.bank_floor = some_bytes(3);
  snapshot.policy.critical_pressure = one_in(5);
  return snapshot;
}

Need some_need() {
  Need need{.model = pick<std::string>({"a", "c", "m"}),
            .caller = pick({CallerClass::kForeground, CallerClass::kForeground,
                            CallerClass::kOperator, CallerClass::kIdle}),
            .since = some_time_ago(),
            .until = kNow + seconds(60)};
  const int options = one_in(3) ? 2 : 1;
  for (int i = 0; i < options; ++i) {
    PlacementOption option;
    option.bytes[static_cast<DomainIndex>(any(0, kDomains - 1))] =
        static_cast<std::uint64_t>(any(6, 26));
    if (one_in(2)) option.bytes = option.bytes + some_bytes(12);
    for (DomainIndex d = 1; d < kDomains; ++d) {
      if (option.bytes[d] > 0) option.placement.shares.push_back({.device = d, .layers = 1});
    }
    need.options.push_back(option);
  }
  return need;
}

namespace {

void show(std::ostream& out, const DomainBytes& bytes) {
  out << " [";
  for (DomainIndex d = 0; d < kDomains; ++d) out << (d > 0 ? " " : "") << bytes[d];
  out << "]";
}

long long age(SteadyTime since) {
  return std::chrono::duration_cast<seconds>(kNow - since).count();
}

void show(std::ostream& out, const Snapshot& snapshot) {
  for (const Domain& domain : snapshot.domains) {
    out << domain.limit() << " of " << domain.id << "; ";
  }
  out << "bank";
  show(out, snapshot.bank);
  out << " floor";
  show(out, snapshot.bank_floor);
  out << (snapshot.policy.critical_pressure ? " critical\n" : "\n");
  for (const Entry& entry : snapshot.entries) {
    out << entry.id.to_string().substr(33) << " " << entry.model << " state "
        << static_cast<int>(entry.state);
    show(out, entry.charge);
    out << (entry.pinned ? " pinned" : "") << (entry.clients > 0 ? " clients" : "")
        << (entry.soft > 0 ? " soft" : "") << (entry.used_last_by_idle_work ? " by idle" : "")
        << (entry.torn_down_before ? " torn" : "") << " idle " << age(entry.idle_since);
    if (entry.abandoned_since) out << " abandoned " << age(*entry.abandoned_since);
    out << "\n";
  }
  for (const Hold& hold : snapshot.holds) {
    out << "hold " << hold.model;
    show(out, hold.bytes);
    out << " since " << age(hold.since) << " until " << age(hold.until) << " frees";
    for (const Uuid& id : hold.frees) out << " " << id.to_string().substr(33);
    out << "\n";
  }
  for (const IdleJob& job : snapshot.jobs) {
    out << "job on " << job.instance.to_string().substr(33);
    show(out, job.extra);
    out << "\n";
  }
}

void show(std::ostream& out, const Need& need) {
  out << "need " << need.model << " class " << static_cast<int>(need.caller) << " since "
      << age(need.since);
  for (const PlacementOption& option : need.options) show(out, option.bytes);
  out << "\n";
}

}  // namespace

Seen::Seen() : snapshot(some_snapshot()), need(some_need()), decision(plan(snapshot, need)) {
  std::ostringstream out;
  show(out, snapshot);
  show(out, need);
  out << decision_name(decision);
  if (const auto* park = std::get_if<Park>(&decision)) out << " for " << park_name(park->what);
  if (const auto* refuse = std::get_if<Refuse>(&decision)) {
    out << " as " << refusal_name(refuse->why);
  }
  for (const std::string& victim : victims_of(decision)) out << " " << victim;
  RC_LOG() << out.str() << "\n";
}

}  // namespace berth::core::testing
