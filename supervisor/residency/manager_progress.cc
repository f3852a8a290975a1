#include "supervisor/residency/manager.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "supervisor/core/instance_state.h"
#include "supervisor/core/memory/decision.h"
#include "supervisor/core/queue_pace.h"
#include "supervisor/core/waiters.h"
#include "supervisor/residency/instance.h"
#include "supervisor/residency/manager_words.h"
#include "supervisor/residency/waiter.h"

// What those who wait are told meanwhile.
namespace berth::residency {
namespace {

constexpr Duration kPositionsPause = std::chrono::milliseconds(100);

std::optional<std::chrono::milliseconds> whole(std::optional<Duration> wait) {
  if (!wait) return std::nullopt;
  return std::chrono::ceil<std::chrono::milliseconds>(*wait);
}

}  // namespace

void Manager::report_soon(Berth& berth) {
  if (berth.report_posted || berth.queue.empty()) return;
  berth.report_posted = true;
  environment_.clock.post([weak = weak_from_this(), model = berth.model->name] {
    if (const auto self = weak.lock()) self->report(model);
  });
}

// While answers come and go every place in the queue moves with each of them: many who wait would
// cost more than those who are served. So all are told at once, now and then; who is new, at once.
bool Manager::tells_only_new(Berth& berth) {
  const bool serves = berth.current != nullptr && info(berth.current->machine().state()).leases;
  const SteadyTime next = berth.positions_told + kPositionsPause;
  const SteadyTime now = environment_.clock.now();
  if (!serves || now >= next) {
    berth.positions_told = serves ? now : SteadyTime();
    berth.positions_timer.reset();
    return false;
  }
  if (!berth.positions_timer.armed()) {
    berth.positions_timer =
        environment_.clock.sleep_until(next, [weak = weak_from_this(), model = berth.model->name] {
          const auto self = weak.lock();
          if (!self) return;
          if (const auto found = self->berths_.find(model); found != self->berths_.end()) {
            self->report_soon(found->second);
          }
        });
  }
  return true;
}

void Manager::report(const std::string& model) {
  Berth& berth = berths_.at(model);
  berth.report_posted = false;
  const bool only_new = tells_only_new(berth);
  std::vector<core::Ticket> whom = std::exchange(berth.newcomers, {});
  if (!only_new) whom = berth.queue.tickets();
  std::uint32_t place = 0;
  // Whoever is told may come, go and end things: nothing but the places is kept from one to the
  // next, and those are told anew soon.
  for (const core::Ticket ticket : whom) {
    ++place;
    if (detached_) return;
    const auto waiter = waiters_.find(ticket);
    if (waiter == waiters_.end() || waiter->second.answer) continue;
    std::optional<ClaimProgress>& told = waiter->second.told;
    std::optional<std::uint32_t> position;
    if (berth.queue.has_position(ticket)) {
      position = only_new ? berth.queue.position(ticket) : place;
    }
    ClaimProgress progress = progress_of(berth, position);
    const auto key = [](const ClaimProgress& one) {
      return std::tie(one.queue_position, one.phase, one.waits_for, one.fraction);
    };
    if (told && key(*told) == key(progress)) continue;
    told = progress;
    waiter->second.observer->on_claim_progress(progress);
  }
}

// What is being stopped is gone in a moment; what clients use gives way after max_wait (M12). How
// long other programs keep their memory, or an older one needs, nobody knows.
std::optional<Duration> Manager::load_wait(const Berth& berth, const Room::Waiting* room) const {
  std::optional<Duration> until_room;
  const auto is = [room](core::ParkFor what) { return room->what == core::park_name(what); };
  if (room == nullptr || room->what == kWaitsForCheck || room->what == kWaitsForIdleWork ||
      is(core::ParkFor::kLeaving) || is(core::ParkFor::kClosing)) {
    until_room = Duration::zero();
  } else if (is(core::ParkFor::kGrace)) {
    until_room = room->since + limits_.plan.grace - environment_.clock.now();
  } else if (is(core::ParkFor::kClients)) {
    until_room = room->since + limits_.plan.max_wait - environment_.clock.now();
  }
  return core::load_wait(until_room, berth.last_load);
}

ClaimProgress Manager::progress_of(const Berth& berth,
                                   std::optional<std::uint32_t> position) const {
  ClaimProgress progress;
  if (!position) {
    progress.phase = kPhaseFailed;
    return progress;
  }
  if (berth.current != nullptr) {
    const core::InstanceState state = berth.current->machine().state();
    if (!info(state).leases) return berth.current->progress();
    progress.queue_position = position;
    progress.eta = whole(berth.pace.wait_of(*position, environment_.clock.now()));
    return progress;
  }
  if (leaving(berth.model->name) != nullptr) {
    progress.phase = kPhaseStopping;
    progress.eta = whole(load_wait(berth, nullptr));
    return progress;
  }
  if (verdict_pending(berth.model->name)) {
    progress.phase = kPhaseFailed;
    return progress;
  }
  const Duration left = berth.back_off.not_before() - environment_.clock.now();
  if (room_.counts() && left <= Duration::zero()) {
    progress.phase = kPhaseQueued;
    const Room::Waiting* const waiting = room_.waiting(berth.model->name);
    if (waiting != nullptr) progress.waits_for = waiting->what;
    progress.eta = whole(load_wait(berth, waiting));
    return progress;
  }
  progress.phase = kPhaseBackOff;
  progress.eta = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::max<Duration>(left, Duration::zero()));
  return progress;
}

}  // namespace berth::residency
