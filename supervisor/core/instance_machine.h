#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/clock.h"
#include "common/uuid.h"
#include "supervisor/core/exit_status.h"
#include "supervisor/core/failure.h"
#include "supervisor/core/instance_state.h"
#include "supervisor/core/ledger/verdict.h"
#include "supervisor/core/moment.h"

namespace berth::core {

// How long each step of an instance's life may take.
struct InstancePolicy {
  Duration load_timeout = std::chrono::minutes(30);       // L7
  Duration load_stall = std::chrono::seconds(60);         // L8
  std::optional<Duration> wedge_after;                    // L9; absent: as WedgePolicy says
  Duration ttl{};                                         // M15; 0: never
  Duration cancel_wait = std::chrono::milliseconds(250);  // cancelled work may come back by itself
  Duration term_wait = std::chrono::seconds(10);          // L3
  Duration kill_wait = std::chrono::seconds(5);           // L3
  Duration evidence_wait = std::chrono::seconds(1);    // after a failure, for what it left behind
  Duration disconnect_wait = std::chrono::seconds(5);  // between a stream's end and the exit
};

// --- What happens to an instance.
struct NotLaunched {
  LoadFailure failure;
};
struct Launched {};
struct Listening {};
struct BecameReady {};
struct SaidLoadFailed {
  FailureClass failure_class = FailureClass::kUnclassified;
  std::string reason;  // sanitised
};
// A line of its log says that its load cannot succeed (L7).
struct LogJudged {
  FailureClass failure_class = FailureClass::kUnclassified;
  std::string reason;  // sanitised
};
// Nothing moves in its load any more (L8).
struct Stalled {
  std::string reason;  // for people
};
// It is ready, and its work stands still (L9).
struct Wedged {};
struct Disconnected {};  // the control stream ended; nothing more comes from it
struct LogCollected {};  // the last lines of its log are known
struct OomProven {};     // the kernel killed it for want of memory, and says so (L9)
struct ProcessExited {
  ExitStatus status;
};
struct StopOrdered {
  StopCause cause = StopCause::kNone;
};
// Finish what runs, at most until then, and stop; SteadyTime::max(): however long that takes.
struct CloseOrdered {
  StopCause cause = StopCause::kNone;
  SteadyTime until{};
};
// Whom it was closed for does not need that any more: takes new work again.
struct ReopenOrdered {};
struct LeaseGranted {};
struct LeaseReturned {
  bool client = false;  // a client's work, which counts as activity (M15)
};
struct TimePassed {};  // wake_at() is over

using InstanceEvent =
    std::variant<NotLaunched, Launched, Listening, BecameReady, SaidLoadFailed, LogJudged, Stalled,
                 Wedged, Disconnected, LogCollected, OomProven, ProcessExited, StopOrdered,
                 CloseOrdered, ReopenOrdered, LeaseGranted, LeaseReturned, TimePassed>;

// --- What is to be done about it, in this order.
enum class InstanceAction : std::uint8_t {
  kConnect,            // open the control stream
  kCancelInFlight,     // end every request that runs on it
  kTerminate,          // SIGTERM to the process group
  kKill,               // SIGKILL to the process group
  kCollectLog,         // fetch the last lines of its log; LogCollected is the answer
  kReportReady,        // serve who waits
  kReportUnavailable,  // it will serve no one (any more)
  kReportStopping,     // a process is being stopped; cause()
  kReportFailed,       // the load failed by itself, and all evidence is there; failure()
  kReportInterrupted,  // the load was ended by us; cause()
  kReportDied,         // it ended by itself after it was ready
  kReportExited,       // its process is gone; exit_status()
  kReportStuck,
};
using InstanceActions = std::vector<InstanceAction>;

// What is waited for, since when and until when.
struct Wait {
  std::string_view what;  // load | evidence | requests | cancelled requests | SIGTERM | SIGKILL
  SteadyTime since{};
  SteadyTime until{};
};

// The life of one instance (L1, L2, L3, L7, L9, M15): events in, actions out. Wanted state, actual
// state, job in progress and last result are four separate things, each with the time of its last
// change. Pure: no I/O, no clock, any thread, a value. An event that does not fit the state is
// dropped, since it is late: what it reports has been overtaken.
class InstanceMachine {
 public:
  InstanceMachine(Uuid id, const InstancePolicy& policy, const Moment& now);

  // `instance`: whose event this is. One of another instance is dropped (L1).
  [[nodiscard]] InstanceActions apply(const Uuid& instance, const InstanceEvent& event,
                                      const Moment& now);

  [[nodiscard]] const Uuid& id() const { return id_; }
  [[nodiscard]] InstanceState state() const { return state_.value; }
  [[nodiscard]] const Stamped<InstanceState>& stamped_state() const { return state_; }
  [[nodiscard]] const Stamped<Wanted>& wanted() const { return wanted_; }
  [[nodiscard]] const Stamped<InstanceJob>& job() const { return job_; }
  [[nodiscard]] const Stamped<InstanceResult>& result() const { return result_; }

  // Its memory counts: from its beginning until its process is proven gone (L2).
  [[nodiscard]] bool charged() const { return info(state_.value).charged; }
  // A new lease may be granted.
  [[nodiscard]] bool takes_leases() const;
  [[nodiscard]] bool has_process() const { return has_process_; }
  [[nodiscard]] std::uint32_t leases() const { return leases_; }
  // Nothing more is to come of it: gone, and if its load failed, that was reported.
  [[nodiscard]] bool finished() const { return is_terminal(state_.value) && !verdict_pending_; }

  [[nodiscard]] StopCause cause() const { return cause_; }
  [[nodiscard]] const std::optional<LoadFailure>& failure() const { return failure_; }
  [[nodiscard]] const std::optional<ExitStatus>& exit_status() const { return exit_; }
  // exit_status() as far as it is its own doing (L20); absent also while it lives.
  [[nodiscard]] std::optional<ExitStatus> own_exit() const;
  // It was ready and ended without an order of ours; one that we ended because its work stood still
  // or its connection broke did not.
  [[nodiscard]] bool died_by_itself() const;
  [[nodiscard]] const std::optional<Moment>& ready_since() const { return ready_; }
  [[nodiscard]] const Moment& created() const { return created_; }

  [[nodiscard]] const std::optional<Wait>& wait() const { return wait_; }
  // Pinned (M16): as long as that is so it is not unloaded for idleness.
  void pin(bool pinned) { pinned_ = pinned; }
  [[nodiscard]] bool pinned() const { return pinned_; }
  // When TimePassed is due, at the latest; absent: never. A ttl counts on the boot clock, which
  // runs on while the machine is suspended, so it is looked at once a minute.
  [[nodiscard]] std::optional<SteadyTime> wake_at(const Moment& now) const;
  // Until it is unloaded for idleness; absent: it is not idle, or never.
  [[nodiscard]] std::optional<Duration> ttl_left(const Moment& now) const;

 private:
  void on_event(const NotLaunched& event, const Moment& now, InstanceActions& out);
  void on_event(const Launched& event, const Moment& now, InstanceActions& out);
  void on_event(const Listening& event, const Moment& now, InstanceActions& out);
  void on_event(const BecameReady& event, const Moment& now, InstanceActions& out);
  void on_event(const SaidLoadFailed& event, const Moment& now, InstanceActions& out);
  void on_event(const LogJudged& event, const Moment& now, InstanceActions& out);
  void on_event(const Stalled& event, const Moment& now, InstanceActions& out);
  void on_event(const Wedged& event, const Moment& now, InstanceActions& out);
  void on_event(const Disconnected& event, const Moment& now, InstanceActions& out);
  void on_event(const LogCollected& event, const Moment& now, InstanceActions& out);
  void on_event(const OomProven& event, const Moment& now, InstanceActions& out);
  void on_event(const ProcessExited& event, const Moment& now, InstanceActions& out);
  void on_event(const StopOrdered& event, const Moment& now, InstanceActions& out);
  void on_event(const CloseOrdered& event, const Moment& now, InstanceActions& out);
  void on_event(const ReopenOrdered& event, const Moment& now, InstanceActions& out);
  void on_event(const LeaseGranted& event, const Moment& now, InstanceActions& out);
  void on_event(const LeaseReturned& event, const Moment& now, InstanceActions& out);
  void on_event(const TimePassed& event, const Moment& now, InstanceActions& out);

  void enter(InstanceState next, const Moment& now);
  void wait_for(std::string_view what, Duration at_most, const Moment& now);
  void order_stop(StopCause cause, const Moment& now, InstanceActions& out);
  void stop_as_dead(StopCause cause, const Moment& now, InstanceActions& out);
  void terminate(const Moment& now, InstanceActions& out);
  void kill(const Moment& now, InstanceActions& out);
  void fail_load(StopCause cause, FailureClass said, std::string reason, const Moment& now,
                 InstanceActions& out);
  void hear(FailureClass said, std::string reason);
  void weigh();
  void report_if_known(InstanceActions& out);
  [[nodiscard]] bool lacks_reason() const;
  void on_exit_before_ready(const Moment& now, InstanceActions& out);
  void on_wait_over(const Moment& now, InstanceActions& out);

  Uuid id_;
  InstancePolicy policy_;
  Moment created_;
  Stamped<InstanceState> state_;
  Stamped<Wanted> wanted_;
  Stamped<InstanceJob> job_;
  Stamped<InstanceResult> result_;

  bool pinned_ = false;
  bool has_process_ = false;
  SentSignals sent_;
  bool stream_open_ = false;
  bool log_pending_ = false;
  bool verdict_pending_ = false;  // the load failed by itself and that is not reported yet
  std::uint32_t leases_ = 0;
  StopCause cause_ = StopCause::kNone;
  DeathEvidence evidence_;              // of a load that failed by itself
  std::optional<LoadFailure> failure_;  // as the evidence says until now
  std::optional<ExitStatus> exit_;
  std::optional<Moment> ready_;
  BootTime active_{};  // first ready, or the last completion of a client's work

  std::optional<Wait> wait_;                 // of the job
  std::optional<SteadyTime> verdict_until_;  // evidence
  std::optional<SteadyTime> exit_until_;     // after the stream's end
};

}  // namespace berth::core
