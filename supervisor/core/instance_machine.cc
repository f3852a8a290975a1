#include "supervisor/core/instance_machine.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "common/clock.h"
#include "common/units.h"
#include "common/uuid.h"
#include "supervisor/core/exit_status.h"
#include "supervisor/core/failure.h"
#include "supervisor/core/instance_state.h"
#include "supervisor/core/ledger/verdict.h"
#include "supervisor/core/moment.h"
#include "supervisor/core/mutation.h"

namespace berth::core {
namespace {

using State = InstanceState;
using Action = InstanceAction;

constexpr Duration kTtlLook = std::chrono::minutes(1);

bool loads(State state) {
  return state == State::kStarting || state == State::kLoading;
}
bool serves(State state) {
  return state == State::kReady || state == State::kBusy || state == State::kClosing;
}

}  // namespace

InstanceMachine::InstanceMachine(Uuid id, const InstancePolicy& policy, const Moment& now)
    : id_(id),
      policy_(policy),
      created_(now),
      state_{State::kStarting, now},
      wanted_{Wanted::kReady, now},
      job_{InstanceJob::kLoad, now},
      result_{InstanceResult::kNone, now} {
  wait_for("load", policy_.load_timeout, now);
}

InstanceActions InstanceMachine::apply(const Uuid& instance, const InstanceEvent& event,
                                       const Moment& now) {
  InstanceActions out;
  if (instance != id_ && !mutated(Mutation::kNoInstanceCheck)) return out;
  std::visit([&](const auto& what) { on_event(what, now, out); }, event);
  return out;
}

void InstanceMachine::on_event(const NotLaunched& event, const Moment& now, InstanceActions& out) {
  if (state_.value != State::kStarting || has_process_) return;
  failure_ = event.failure;
  result_.set(InstanceResult::kFailedLaunch, now);
  enter(State::kFailed, now);
  out.insert(out.end(), {Action::kReportUnavailable, Action::kReportFailed});
}

void InstanceMachine::on_event(const Launched& /*event*/, const Moment& /*now*/,
                               InstanceActions& /*out*/) {
  if (state_.value == State::kStarting) has_process_ = true;
}

void InstanceMachine::on_event(const Listening& /*event*/, const Moment& now,
                               InstanceActions& out) {
  if (state_.value != State::kStarting || !has_process_) return;
  enter(State::kLoading, now);
  stream_open_ = true;
  out.push_back(Action::kConnect);
}

void InstanceMachine::on_event(const BecameReady& /*event*/, const Moment& now,
                               InstanceActions& out) {
  if (state_.value != State::kLoading) return;
  ready_ = now;
  active_ = now.boot;
  wait_.reset();
  job_.set(InstanceJob::kNone, now);
  result_.set(InstanceResult::kReady, now);
  enter(State::kReady, now);
  out.push_back(Action::kReportReady);
}

void InstanceMachine::on_event(const SaidLoadFailed& event, const Moment& now,
                               InstanceActions& out) {
  if (state_.value == State::kLoading) {
    fail_load(StopCause::kLoadFailed, event.failure_class, event.reason, now, out);
  } else if (lacks_reason()) {
    // The process was gone before its last words arrived: they still say why.
    hear(event.failure_class, event.reason);
    stream_open_ = false;
    report_if_known(out);
  }
}

void InstanceMachine::on_event(const LogJudged& event, const Moment& now, InstanceActions& out) {
  if (loads(state_.value) && has_process_) {
    fail_load(StopCause::kLoadFailed, event.failure_class, event.reason, now, out);
  } else if (lacks_reason()) {
    // Its exit is reported with the line once all else that it left behind is there.
    hear(event.failure_class, event.reason);
  }
}

void InstanceMachine::on_event(const Stalled& event, const Moment& now, InstanceActions& out) {
  if (!loads(state_.value) || !has_process_) return;
  fail_load(StopCause::kStalled, FailureClass::kStalled, event.reason, now, out);
}

void InstanceMachine::on_event(const Wedged& /*event*/, const Moment& now, InstanceActions& out) {
  if (serves(state_.value)) stop_as_dead(StopCause::kWedged, now, out);
}

void InstanceMachine::on_event(const Disconnected& /*event*/, const Moment& now,
                               InstanceActions& out) {
  if (!stream_open_) return;
  stream_open_ = false;
  if (verdict_pending_) {
    report_if_known(out);
  } else if (state_.value == State::kLoading || serves(state_.value)) {
    exit_until_ = now.steady + policy_.disconnect_wait;
  }
}

void InstanceMachine::on_event(const LogCollected& /*event*/, const Moment& /*now*/,
                               InstanceActions& out) {
  if (!log_pending_) return;
  log_pending_ = false;
  report_if_known(out);
}

void InstanceMachine::on_event(const OomProven& /*event*/, const Moment& /*now*/,
                               InstanceActions& /*out*/) {
  if (!verdict_pending_ || has_process_) return;
  evidence_.oom_proven = true;
  if (evidence_.reason.empty()) evidence_.reason = kOomReason;
  weigh();
}

void InstanceMachine::on_event(const ProcessExited& event, const Moment& now,
                               InstanceActions& out) {
  if (!has_process_ || is_terminal(state_.value)) return;
  const State before = state_.value;
  has_process_ = false;
  exit_ = event.status;
  exit_until_.reset();
  if (loads(before)) {
    on_exit_before_ready(now, out);
    return;
  }
  if (serves(before)) {
    result_.set(InstanceResult::kDied, now);
    enter(State::kGone, now);
    if (leases_ > 0) out.push_back(Action::kCancelInFlight);
    if (before != State::kClosing) out.push_back(Action::kReportUnavailable);
    out.insert(out.end(), {Action::kReportDied, Action::kReportExited});
    return;
  }
  if (verdict_pending_) weigh();
  if (result_.value == InstanceResult::kReady) result_.set(InstanceResult::kStopped, now);
  enter(ready_ ? State::kGone : State::kFailed, now);
  out.push_back(Action::kReportExited);
}

void InstanceMachine::on_exit_before_ready(const Moment& now, InstanceActions& out) {
  result_.set(InstanceResult::kFailedOwn, now);
  enter(State::kFailed, now);
  weigh();
  verdict_pending_ = true;
  log_pending_ = true;
  verdict_until_ = now.steady + policy_.evidence_wait;
  out.insert(out.end(), {Action::kReportUnavailable, Action::kReportExited, Action::kCollectLog});
}

void InstanceMachine::on_event(const StopOrdered& event, const Moment& now, InstanceActions& out) {
  order_stop(event.cause, now, out);
}

void InstanceMachine::on_event(const CloseOrdered& event, const Moment& now, InstanceActions& out) {
  if (state_.value == State::kClosing) {
    if (wait_ && event.until < wait_->until) wait_->until = event.until;
    return;
  }
  if (state_.value != State::kBusy) {
    order_stop(event.cause, now, out);
    return;
  }
  cause_ = event.cause;
  wanted_.set(Wanted::kGone, now);
  job_.set(InstanceJob::kClose, now);
  wait_for("requests", event.until - now.steady, now);
  enter(State::kClosing, now);
  out.push_back(Action::kReportUnavailable);
}

void InstanceMachine::on_event(const ReopenOrdered& /*event*/, const Moment& now,
                               InstanceActions& /*out*/) {
  if (state_.value != State::kClosing) return;
  cause_ = StopCause::kNone;
  wait_.reset();
  wanted_.set(Wanted::kReady, now);
  job_.set(InstanceJob::kNone, now);
  enter(State::kBusy, now);
}

void InstanceMachine::on_event(const LeaseGranted& /*event*/, const Moment& now,
                               InstanceActions& /*out*/) {
  if (!takes_leases()) return;
  ++leases_;
  if (state_.value == State::kReady) enter(State::kBusy, now);
}

void InstanceMachine::on_event(const LeaseReturned& event, const Moment& now,
                               InstanceActions& out) {
  if (leases_ == 0) return;
  --leases_;
  if (event.client) active_ = now.boot;
  if (leases_ > 0) return;
  switch (state_.value) {
    case State::kBusy:
      enter(State::kReady, now);
      break;
    case State::kClosing:
      order_stop(cause_, now, out);
      break;
    case State::kDraining:
      terminate(now, out);
      break;
    case State::kAbsent:
    case State::kStarting:
    case State::kLoading:
    case State::kReady:
    case State::kStopping:
    case State::kStuck:
    case State::kFailed:
    case State::kGone:
      break;
  }
}

void InstanceMachine::on_event(const TimePassed& /*event*/, const Moment& now,
                               InstanceActions& out) {
  if (verdict_until_ && *verdict_until_ <= now.steady) {
    log_pending_ = false;
    stream_open_ = false;
    report_if_known(out);
  }
  if (exit_until_ && *exit_until_ <= now.steady) {
    exit_until_.reset();
    if (state_.value == State::kLoading) {
      fail_load(StopCause::kDisconnected, FailureClass::kUnclassified,
                "the worker ended its connection and did not exit", now, out);
    } else if (serves(state_.value)) {
      stop_as_dead(StopCause::kDisconnected, now, out);
    }
  }
  if (wait_ && wait_->until <= now.steady) on_wait_over(now, out);
  const std::optional<Duration> left = ttl_left(now);
  if (left && *left <= Duration::zero()) order_stop(StopCause::kIdle, now, out);
}

void InstanceMachine::on_wait_over(const Moment& now, InstanceActions& out) {
  switch (state_.value) {
    case State::kStarting:
    case State::kLoading: {
      const auto limit =
          std::chrono::duration_cast<std::chrono::milliseconds>(policy_.load_timeout);
      fail_load(StopCause::kLoadTimeout, FailureClass::kTimeout,
                "it was not ready within " + format_duration_human(limit), now, out);
      break;
    }
    case State::kClosing:
      order_stop(cause_, now, out);
      break;
    case State::kDraining:
      terminate(now, out);
      break;
    case State::kStopping:
      if (!sent_.kill && !mutated(Mutation::kNoKillAfterTerm)) {
        kill(now, out);
      } else {
        wait_.reset();
        enter(State::kStuck, now);
        out.push_back(Action::kReportStuck);
      }
      break;
    case State::kAbsent:
    case State::kReady:
    case State::kBusy:
    case State::kStuck:
    case State::kFailed:
    case State::kGone:
      wait_.reset();
      break;
  }
}

void InstanceMachine::order_stop(StopCause cause, const Moment& now, InstanceActions& out) {
  const State before = state_.value;
  if (loads(before)) {
    cause_ = cause;
    wanted_.set(Wanted::kGone, now);
    result_.set(InstanceResult::kFailedInterrupted, now);
    out.insert(out.end(), {Action::kReportUnavailable, Action::kReportInterrupted});
    if (has_process_) {
      kill(now, out);
      out.push_back(Action::kReportStopping);
    } else {
      enter(State::kFailed, now);
    }
    return;
  }
  if (!serves(before)) return;
  cause_ = cause;
  exit_until_.reset();
  wanted_.set(Wanted::kGone, now);
  job_.set(InstanceJob::kStop, now);
  if (before != State::kClosing) out.push_back(Action::kReportUnavailable);
  out.push_back(Action::kReportStopping);
  if (leases_ == 0) {
    terminate(now, out);
    return;
  }
  enter(State::kDraining, now);
  wait_for("cancelled requests", policy_.cancel_wait, now);
  out.push_back(Action::kCancelInFlight);
}

// Its process lives, and it serves no one any more: for those that ask for it that is a death.
void InstanceMachine::stop_as_dead(StopCause cause, const Moment& now, InstanceActions& out) {
  result_.set(InstanceResult::kDied, now);
  order_stop(cause, now, out);
  out.push_back(Action::kReportDied);
}

void InstanceMachine::terminate(const Moment& now, InstanceActions& out) {
  sent_.term = true;
  enter(State::kStopping, now);
  wait_for("SIGTERM", policy_.term_wait, now);
  out.push_back(Action::kTerminate);
}

void InstanceMachine::kill(const Moment& now, InstanceActions& out) {
  sent_.kill = true;
  if (job_.value != InstanceJob::kStop) job_.set(InstanceJob::kStop, now);
  enter(State::kStopping, now);
  wait_for("SIGKILL", policy_.kill_wait, now);
  out.push_back(Action::kKill);
}

void InstanceMachine::fail_load(StopCause cause, FailureClass said, std::string reason,
                                const Moment& now, InstanceActions& out) {
  cause_ = cause;
  exit_until_.reset();
  wanted_.set(Wanted::kGone, now);
  result_.set(InstanceResult::kFailedOwn, now);
  verdict_pending_ = true;
  stream_open_ = false;
  out.push_back(Action::kReportUnavailable);
  if (!has_process_) {
    hear(said, std::move(reason));
    enter(State::kFailed, now);
    report_if_known(out);
    return;
  }
  kill(now, out);
  hear(said, std::move(reason));
  log_pending_ = true;
  verdict_until_ = now.steady + policy_.evidence_wait;
  out.insert(out.end(), {Action::kReportStopping, Action::kCollectLog});
}

// Its process ended by itself, and nobody has said why yet.
bool InstanceMachine::lacks_reason() const {
  return verdict_pending_ && failure_ && failure_->status && failure_->reason.empty();
}

void InstanceMachine::hear(FailureClass said, std::string reason) {
  evidence_.said = said;
  evidence_.reason = std::move(reason);
  weigh();
}

void InstanceMachine::weigh() {
  evidence_.sent = mutated(Mutation::kOwnSignalBlamed) ? SentSignals() : sent_;
  evidence_.exit = exit_;
  failure_ = judge(evidence_);
}

void InstanceMachine::report_if_known(InstanceActions& out) {
  if (!verdict_pending_ || log_pending_ || stream_open_) return;
  verdict_pending_ = false;
  verdict_until_.reset();
  out.push_back(Action::kReportFailed);
}

std::optional<ExitStatus> InstanceMachine::own_exit() const {
  return mutated(Mutation::kOwnSignalBlamed) ? exit_ : core::own_exit(sent_, exit_);
}

bool InstanceMachine::died_by_itself() const {
  if (mutated(Mutation::kGivenUpIsDeath)) return result_.value == InstanceResult::kDied;
  return result_.value == InstanceResult::kDied && cause_ != StopCause::kWedged &&
         cause_ != StopCause::kDisconnected;
}

void InstanceMachine::enter(State next, const Moment& now) {
  state_.set(next, now);
  if (is_terminal(next)) {
    wait_.reset();
    exit_until_.reset();
    job_.set(InstanceJob::kNone, now);
    if (wanted_.value != Wanted::kGone) wanted_.set(Wanted::kGone, now);
  }
}

void InstanceMachine::wait_for(std::string_view what, Duration at_most, const Moment& now) {
  const bool endless = at_most > SteadyTime::max() - now.steady;
  wait_ = Wait{what, now.steady, endless ? SteadyTime::max() : now.steady + at_most};
}

bool InstanceMachine::takes_leases() const {
  return state_.value == State::kReady || state_.value == State::kBusy;
}

std::optional<SteadyTime> InstanceMachine::wake_at(const Moment& now) const {
  std::optional<SteadyTime> first;
  const auto consider = [&first](std::optional<SteadyTime> when) {
    if (when && (!first || *when < *first)) first = when;
  };
  if (wait_ && wait_->until != SteadyTime::max()) consider(wait_->until);
  consider(verdict_until_);
  consider(exit_until_);
  const std::optional<Duration> left = ttl_left(now);
  if (left) consider(now.steady + std::clamp<Duration>(*left, Duration::zero(), kTtlLook));
  return first;
}

std::optional<Duration> InstanceMachine::ttl_left(const Moment& now) const {
  if (state_.value != State::kReady || pinned_ || policy_.ttl <= Duration::zero()) {
    return std::nullopt;
  }
  return active_ + policy_.ttl - now.boot;
}

}  // namespace berth::core
