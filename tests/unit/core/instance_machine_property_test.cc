#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "common/clock.h"
#include "common/uuid.h"
#include "supervisor/core/exit_status.h"
#include "supervisor/core/instance_machine.h"
#include "supervisor/core/instance_state.h"
#include "supervisor/core/moment.h"

namespace berth::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Action = InstanceAction;

const Uuid kId = Uuid::parse("01977430-1ec8-7002-8000-000000000002");

InstanceEvent event_of(std::uint8_t draw, const Moment& now) {
  switch (draw % 16) {
    case 0:
      return NotLaunched{};
    case 1:
      return Launched{};
    case 2:
      return Listening{};
    case 3:
      return BecameReady{};
    case 4:
      return SaidLoadFailed{};
    case 5:
      return Disconnected{};
    case 6:
      return LogCollected{};
    case 7:
      return ProcessExited{Exited{1}};
    case 8:
      return StopOrdered{StopCause::kUnload};
    case 9:
      return CloseOrdered{StopCause::kShutdown, now.steady + seconds(3)};
    case 10:
      return LeaseGranted{};
    case 11:
      return LeaseReturned{draw % 2 == 0};
    case 12:
      return Stalled{"nothing moved"};
    case 13:
      return Wedged{};
    case 14:
      return LogJudged{FailureClass::kPermanent, "ValueError: no"};
    default:
      return TimePassed{};
  }
}

// Whatever happens, in whatever order: the promises of spec 1 hold.
RC_GTEST_PROP(InstanceMachineProperty, L2_L7_HoldInAnyOrderOfEvents,
              (const std::vector<std::uint8_t>& draws)) {
  InstancePolicy policy;
  policy.ttl = seconds(60);
  Moment now{SteadyTime(seconds(1)), BootTime(seconds(1)), WallTime(seconds(1))};
  InstanceMachine machine(kId, policy, now);
  // The shell's own knowledge: a process is there from Launched to ProcessExited.
  bool process = false;
  std::vector<Action> all;
  const auto apply = [&](const InstanceEvent& event) {
    const bool terminal = is_terminal(machine.state());
    const bool finished = machine.finished();
    const InstanceActions actions = machine.apply(kId, event, now);
    if (terminal) RC_ASSERT(is_terminal(machine.state()));
    if (finished) RC_ASSERT(actions.empty());
    all.insert(all.end(), actions.begin(), actions.end());
  };
  for (const std::uint8_t draw : draws) {
    now.steady += milliseconds(draw);
    now.boot += milliseconds(draw);
    const InstanceEvent event = event_of(draw, now);
    const bool launch = std::holds_alternative<Launched>(event);
    const bool exit = std::holds_alternative<ProcessExited>(event);
    // What cannot happen: a launch after the start, an exit without a process.
    if (launch && (process || machine.state() != InstanceState::kStarting)) continue;
    if (exit && !process) continue;
    process = (process || launch) && !exit;
    apply(event);
    RC_ASSERT(machine.has_process() == process);
    if (process) RC_ASSERT(machine.charged());
    if (!process && machine.state() != InstanceState::kStarting) RC_ASSERT(!machine.charged());
  }
  // From here on nothing happens but time, and the process obeys SIGKILL at last.
  apply(StopOrdered{StopCause::kShutdown});
  for (int step = 0; step < 20; ++step) {
    const auto wake = machine.wake_at(now);
    if (!wake) break;
    const Duration left = std::max<Duration>(*wake - now.steady, Duration::zero());
    now.steady += left;
    now.boot += left;
    apply(TimePassed{});
  }
  RC_ASSERT(!machine.wake_at(now));
  if (process) apply(ProcessExited{Signalled{9, false}});
  RC_ASSERT(machine.finished());

  const auto count = [&all](Action action) { return std::ranges::count(all, action); };
  const auto ends = count(Action::kReportReady) + count(Action::kReportFailed) +
                    count(Action::kReportInterrupted);
  RC_ASSERT(ends == 1);
  RC_ASSERT(count(Action::kReportUnavailable) == 1);
  RC_ASSERT(count(Action::kReportStopping) <= 1);
  RC_ASSERT(count(Action::kReportStuck) <= 1);
  RC_ASSERT(count(Action::kReportDied) <= 1);
  RC_ASSERT(count(Action::kTerminate) <= 1);
  RC_ASSERT(count(Action::kKill) <= 1);
}

}  // namespace
}  // namespace berth::core
