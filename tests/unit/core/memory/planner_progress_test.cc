#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "supervisor/core/memory/planner.h"
#include "tests/unit/core/memory/plans.h"
#include "tests/unit/core/memory/some_plan.h"

// Several clients wait for several models, and what the planner says is done, a second at a time:
// each of them is admitted or refused in the end, and nothing is ever admitted over a limit.
namespace berth::core {
namespace {

using std::chrono::seconds;
using testing::any;
using testing::kDomains;
using testing::numbered;
using testing::one_in;
using testing::some_need;
using testing::some_snapshot;

struct Waiting {
  Need need;
  std::optional<Hold> hold{};
};

class World {
 public:
  World() {
    snapshot_.holds.clear();
    for (Entry& entry : snapshot_.entries) {
      const bool loads =
          entry.state == EntryState::kStarting || entry.state == EntryState::kLoading;
      ready_at_.push_back(loads ? 5 : 0);
    }
    const int waiting = any(1, 4);
    for (int i = 0; i < waiting; ++i) {
      Need need = some_need();
      need.model = "w" + std::to_string(i);
      need.until = testing::kNow + std::chrono::hours(1);
      if (need.caller == CallerClass::kIdle) need.caller = CallerClass::kForeground;
      waiting_.push_back({.need = need});
    }
    std::ranges::sort(waiting_, {}, [](const Waiting& one) {
      return std::tuple(one.need.since, one.need.model);
    });
  }

  // Somebody comes who wants little.
  void come() {
    Need need = some_need();
    need.model = "y" + std::to_string(next_++);
    need.caller = CallerClass::kForeground;
    need.since = snapshot_.now;
    need.until = snapshot_.now + std::chrono::hours(1);
    need.options.resize(1);
    need.options[0] = testing::option_on(kHostDomain, testing::in_host(4));
    waiting_.push_back({.need = need});
  }

  // Whether one of those waits who were there from the start.
  [[nodiscard]] bool first_ones_wait() const {
    return std::ranges::any_of(waiting_,
                               [](const Waiting& one) { return one.need.model[0] == 'w'; });
  }

  // A second passes; whether somebody still waits.
  bool step() {
    ++second_;
    snapshot_.now += seconds(1);
    let_go();
    for (std::size_t i = 0; i < waiting_.size();) {
      if (answer(waiting_[i])) {
        waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    return !waiting_.empty();
  }

 private:
  // What is being stopped is gone, what closes has finished, loads become ready. What clients use
  // they use for ever, until it is closed; a model that was admitted is used for three seconds.
  void let_go() {
    for (std::size_t i = 0; i < snapshot_.entries.size();) {
      Entry& entry = snapshot_.entries[i];
      if (entry.state == EntryState::kLeaving) {
        snapshot_.entries.erase(snapshot_.entries.begin() + static_cast<std::ptrdiff_t>(i));
        ready_at_.erase(ready_at_.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      const bool loads =
          entry.state == EntryState::kStarting || entry.state == EntryState::kLoading;
      if (entry.state == EntryState::kClosing && one_in(3)) entry.state = EntryState::kLeaving;
      if (loads && ready_at_[i] <= second_) {
        entry.state = EntryState::kReady;
        entry.idle_since = snapshot_.now;
      }
      if (admitted(entry) && ready_at_[i] + 3 <= second_) entry.clients = 0;
      ++i;
    }
  }

  static bool admitted(const Entry& entry) {
    return entry.model[0] == 'w' || entry.model[0] == 'y';
  }

  Entry& entry_of(const Uuid& id) {
    const auto at = std::ranges::find(snapshot_.entries, id, &Entry::id);
    RC_ASSERT(at != snapshot_.entries.end());
    return *at;
  }

  void admit(const Waiting& one, const PlacementOption& at) {
    Entry entry{.id = numbered(1000 + next_++),
                .model = one.need.model,
                .state = EntryState::kLoading,
                .charge = at.bytes,
                .clients = 1};
    entry.last_used = snapshot_.now;
    snapshot_.entries.push_back(entry);
    ready_at_.push_back(second_ + 2);
    for (DomainIndex d = 0; d < kDomains; ++d) {
      if (at.bytes[d] == 0) continue;
      std::uint64_t used = snapshot_.bank[d];
      for (const Entry& other : snapshot_.entries) used += other.charge[d];
      for (const IdleJob& job : snapshot_.jobs) used += job.extra[d];
      RC_ASSERT(used <= snapshot_.domains[d].limit());
    }
  }

  void stop(const std::vector<Victim>& victims) {
    for (const Victim& victim : victims) {
      Entry& entry = entry_of(victim.id);
      RC_ASSERT(entry.clients == 0U);
      entry.state = EntryState::kLeaving;
    }
  }

  // Does what the planner says; whether that was the last of it.
  bool answer(Waiting& one) {
    snapshot_.holds.clear();
    for (const Waiting& other : waiting_) {
      if (other.hold) snapshot_.holds.push_back(*other.hold);
    }
    const Decision decision = plan(snapshot_, one.need);
    one.hold = hold_of(one.need, decision);
    if (const auto* fits = std::get_if<Fits>(&decision)) {
      admit(one, fits->at);
      return true;
    }
    if (const auto* shrink = std::get_if<ShrinkBank>(&decision)) {
      snapshot_.bank -= shrink->bank;
      admit(one, shrink->at);
      return true;
    }
    if (const auto* evict = std::get_if<Evict>(&decision)) stop(evict->victims);
    if (const auto* pre_empt = std::get_if<PreEmpt>(&decision)) {
      std::erase_if(snapshot_.jobs, [&](const IdleJob& job) {
        return std::ranges::count(pre_empt->jobs, job.id) > 0;
      });
      stop(pre_empt->victims);
    }
    if (const auto* park = std::get_if<Park>(&decision)) {
      for (const Uuid& id : park->close) entry_of(id).state = EntryState::kClosing;
    }
    return std::holds_alternative<Refuse>(decision);
  }

  Snapshot snapshot_ = some_snapshot();
  std::vector<int> ready_at_{};  // one for each entry: the second in which it is ready
  std::vector<Waiting> waiting_{};
  int second_ = 0;
  unsigned next_ = 0;
};

RC_GTEST_PROP(PlannerProgress, T17_T22_EveryWaiterIsAdmittedOrRefusedInTheEnd, ()) {
  World world;
  int passed = 0;
  while (world.step()) {
    ++passed;
    // Four waiters, each at most: max_wait, a closing model's work, a stop, a load, its use, grace.
    RC_ASSERT(passed < 300);
  }
}

RC_GTEST_PROP(PlannerProgress, M9_NoStreamOfYoungerWaitersKeepsTheOldOnesOut, ()) {
  World world;
  int passed = 0;
  while (world.first_ones_wait()) {
    world.come();
    world.step();
    ++passed;
    RC_ASSERT(passed < 300);
  }
}

}  // namespace
}  // namespace berth::core
