#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/event.h"
#include "common/result.h"
#include "common/uuid.h"
#include "supervisor/catalog/model.h"
#include "supervisor/core/exit_status.h"
#include "supervisor/core/ledger/failure_record.h"
#include "supervisor/core/ledger/memory_rule.h"
#include "supervisor/core/ledger/provenance.h"
#include "supervisor/core/memory/decision.h"
#include "supervisor/core/memory/domain.h"
#include "supervisor/core/memory/snapshot.h"
#include "supervisor/process/launcher.h"
#include "supervisor/process/log_watch.h"
#include "supervisor/residency/load_meter.h"
#include "supervisor/residency/memory_access.h"
#include "supervisor/residency/tree_sampler.h"
#include "supervisor/rpc/worker_client.h"
#include "supervisor/store/store.h"

namespace berth::residency {

// The life of instances, claims and leases: the only door to a worker. Everything here belongs to
// the core strand, except where a comment says otherwise.

class RequestEntry;
class Residency;

// A place on a ready instance. RAII: dropping it frees the place and stamps the activity.
// Move-only. May be dropped from any thread (it posts).
class Lease {
 public:
  class Impl;
  Lease();
  explicit Lease(std::unique_ptr<Impl> impl);
  Lease(Lease&&) noexcept;
  Lease& operator=(Lease&&) noexcept;
  ~Lease();

  [[nodiscard]] explicit operator bool() const { return impl_ != nullptr; }
  // The worker's client; valid while the lease is held. Any thread.
  [[nodiscard]] rpc::WorkerClient& worker() const;
  [[nodiscard]] const std::string& instance_id() const;
  [[nodiscard]] std::uint32_t longest_token_bytes() const;
  [[nodiscard]] std::uint32_t window() const;
  // How much of the time since then the instance took to load, its process's start included; zero
  // where it was ready before.
  [[nodiscard]] Duration load_since(SteadyTime since) const;

 private:
  std::unique_ptr<Impl> impl_;
};

// How far a claim is. `fraction` and ETA are those of the load as a whole.
struct ClaimProgress {
  std::optional<std::uint32_t> queue_position;  // 1 = next; absent: not ready yet
  // What the load does: starting | weights | context | warmup; what it waits for before it begins:
  // stopping (the model's last process is still going) | back_off (it died; ETA: of the wait) |
  // queued (for memory).
  std::string phase;
  // With queued: what must happen first, as core::park_name(), "check" (its files are looked at) or
  // "idle_work" (which was told to yield); empty: not known yet.
  std::string waits_for{};
  float fraction = 0;
  // Until it has its place (with a position), is loaded, or the back-off is over, from what was
  // measured before; absent: nothing is known.
  std::optional<std::chrono::milliseconds> eta{};
};

// Told about one claim, on the core strand, never from within acquire().
class ClaimObserver {
 public:
  ClaimObserver() = default;
  ClaimObserver(const ClaimObserver&) = delete;
  ClaimObserver& operator=(const ClaimObserver&) = delete;
  virtual ~ClaimObserver() = default;

  // The request that the claim is for; null: none, as an operator's load.
  [[nodiscard]] virtual const RequestEntry* claimant() const { return nullptr; }
  virtual void on_claim_progress(const ClaimProgress& progress) = 0;
  // Exactly one of these two, last.
  virtual void on_lease(Lease lease) = 0;
  virtual void on_claim_failed(Error error) = 0;
};

// Interest in an instance before it is ready. Dropping it is a hang-up: the load goes on (L5).
class Claim {
 public:
  Claim() = default;
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  virtual ~Claim() = default;
};

// Who asks. An operator's load waits until it is ready or failed, however long that takes; a
// client's wait is bounded by Limits::queue_timeout (M19).
using RequestClass = core::CallerClass;

// One instance, for people: what `berth ps` shows.
struct InstanceSnapshot {
  std::string id;
  std::string model;
  std::string state;
  WallTime state_since{};
  pid_t pid = 0;
  WallTime started{};
  std::optional<ClaimProgress> loading;
  std::uint32_t window = 0;
  std::uint32_t sequences = 0;
  std::uint32_t active = 0;
  std::uint32_t waiting = 0;
  std::uint64_t weights_bytes = 0;
  std::uint64_t kv_bytes = 0;
  std::uint64_t working_bytes = 0;
  std::optional<std::chrono::milliseconds> ttl;
  std::uint64_t requests_served = 0;
  std::string socket;
  std::vector<std::string> command;
  core::DomainBytes charge{};  // by domain; empty: it is not counted
  LaunchPlan plan{};           // as it was admitted
  // What `charge` is made of, where it was measured; absent: plan.terms, as it was predicted.
  std::optional<core::Charge> measured{};
  bool pinned = false;
};

// What of a model of the catalogue is so at present.
struct ModelNow {
  std::string state;  // as Residency::state_of
  // Why it cannot be used, one sentence: its own problem; or, where it is not resident, that a
  // device which its settings name is not there (M17). Empty: it can be.
  std::string problem{};
  // Tokens that its instance is served with (M6); without one the most that it will be. 0: not
  // known.
  std::uint32_t window = 0;
};

// What memory had to be made for, since the start of the program.
struct RoomCounters {
  // By why that model could go: "idle", "abandoned_load", "idle_work", "closing" (M12).
  std::map<std::string, std::uint64_t> evictions{};
  // Requests that a resident model served although an older one waited for its room (M13): each
  // would have been a swap.
  std::uint64_t swaps_avoided = 0;
  std::map<std::string, std::uint64_t> refusals{};  // by core::refusal_name()
  Duration worst_wait{};                            // of a client for its place, on whatever
};

// What would be done for a client that asked for a model now, and what that was decided on (M7).
struct PlanReport {
  core::Decision decision{};
  core::Snapshot snapshot{};
  core::Need need{};
  LaunchPlan launch{};  // of the placement that was decided on
  // False: no memory is counted, or nothing is known of what it takes; it would be admitted without
  // a charge.
  bool counted = false;
  std::optional<Error> refusal{};  // with core::Refuse: what the client would be told
};

// A model that somebody waits for memory for.
struct RoomWait {
  std::string model;
  std::string what;                   // as ClaimProgress::waits_for
  std::vector<std::string> blockers;  // instances
  core::DomainBytes missing{};
  core::DomainBytes held{};  // for it: younger ones are admitted only beside that (M9)
  SteadyTime since{};
};

// One who waits for a model, for people.
struct QueuedWaiter {
  std::string model;
  std::string request_id;  // with the tenant empty: an operator's
  std::string tenant;
  std::uint32_t position = 0;  // 1 = next
  WallTime since{};
  WallTime until{};
  std::optional<std::chrono::milliseconds> eta{};  // absent: nothing is known of that
};

// How an unload went.
struct UnloadOutcome {
  std::string instance_id;
  core::ExitStatus exit;
  std::chrono::milliseconds took{};
};

// A worker that is ready to be started.
struct PreparedLaunch {
  process::LaunchSpec spec;
  // What records and admins see: its arguments, and those of its variables that berthd itself has
  // not; neither with the instance's key.
  std::vector<std::string> shown_argv;
  std::vector<std::string> shown_environment;
  std::string socket;  // where it will listen
  // Added to its arguments where it is the first load under its provenance (L6).
  std::vector<std::string> first_load_arguments{};
  std::optional<process::LogPlace> log{};  // absent: it has none
};

// The catalogue's model of that name; null: there is none.
using FindModel = std::function<std::shared_ptr<const catalog::Model>(const std::string& name)>;

// Those of its models that the configuration pins (M16).
using ConfiguredPins = std::function<std::vector<std::shared_ptr<const catalog::Model>>()>;

// What the residency needs of the world, all of it replaceable. References outlive the residency.
struct Environment {
  Clock& clock;
  IdSource& ids;
  process::Launcher& launcher;
  rpc::WorkerConnector& connector;
  store::Store& store;
  EventSink& events;
  // Builds the launch of a worker for a model, where the plan puts it: program, argv, environment,
  // log file. May block, so it works on the pool and answers on the core strand, never from within
  // the call. Errors: as Launcher::launch.
  std::function<void(std::shared_ptr<const catalog::Model> model, const Uuid& instance,
                     const LaunchPlan& plan, std::function<void(Result<PreparedLaunch>)> done)>
      prepare_launch;
  // The last lines of the model's log since the instance began, sanitised, at most 20. Works on the
  // pool, answers on the core strand.
  std::function<void(const std::string& model, const Uuid& instance,
                     std::function<void(std::vector<std::string>)> done)>
      log_tail;
  // /proc/sys/kernel/random/boot_id: with pid and start time it names a process for good.
  std::string boot_id{};
  // What a load of that model depends on (L19). Quick; core strand. Asked when the load starts, and
  // again for what preparing the launch showed of its program. Empty: nothing is known of it.
  std::function<core::Provenance(const catalog::Model& model)> provenance{};
  // The memory domains as they are. Core strand, and also for every request that a failure for want
  // of memory refuses, so that it must take well under 1 ms (L22). Empty: nothing is known of them.
  std::function<std::vector<core::DomainNow>()> memory{};
  // Looks at the process tree of a load (L8). Empty: no load is taken for stalled.
  WatchTree watch_tree{};
  // Watches the logs of loads (L11). Null: none is watched.
  process::LogWatcher* log_watcher = nullptr;
  // The present catalogue. Quick; core strand. Empty: no change of a model is seen.
  FindModel find_model{};
  // Whether the kernel's log says that it killed that process for want of memory since it was
  // launched (L9). Asked of one that died by a SIGKILL that was not ours. Works on the pool,
  // answers on the core strand; false also where it cannot be read. Empty: nothing is known.
  std::function<void(pid_t pid, std::function<void(bool)> done)> oom_killed{};
  // A request met a failure that stands, so that it is worth a look whether what that depends on is
  // another one by now (L23). Core strand, with every refusal: it must take well under 1 ms and not
  // judge from within the call. Empty: nobody looks.
  std::function<void()> standing_met{};
  // Whether the count of the cgroup in which that process was launched says that the kernel killed
  // something in it for want of memory shortly before the exit (L9): itself or a descendant, so
  // that it is asked whatever the process ended with. Quick; core strand, from its exit on. Empty:
  // nothing is known.
  std::function<bool(pid_t pid)> oom_counted{};
  // Admission by bytes.
  MemoryAccess memory_access{};
  // Measures what loads take. Null: nobody does.
  LoadMeter* load_meter = nullptr;
  // Of the present catalogue. Core strand; asked by catalog_changed(). Empty: none is.
  ConfiguredPins configured_pins{};
};

struct Limits {
  std::uint32_t waiters_per_model = 256;              // M13
  std::uint32_t waiters_total = 2048;                 // M13
  Duration queue_timeout = std::chrono::minutes(10);  // M19
  Duration term_wait = std::chrono::seconds(10);      // L3
  Duration kill_wait = std::chrono::seconds(5);       // L3
  core::PlanPolicy plan{};                            // M8, M12, L5
  // After so long the requests of a model that gives its room to another one end with kDraining
  // (M13); absent: they end by themselves.
  std::optional<Duration> swap_drain{};
  // That the workers which compute share; 0: each keeps the threads that it has.
  std::uint32_t cores = 0;
};

// Owns every instance. Core strand only. Lives as long as the program; destroy it after shutdown()
// has answered.
class Residency {
 public:
  explicit Residency(Environment environment, const Limits& limits = {});
  Residency(const Residency&) = delete;
  Residency& operator=(const Residency&) = delete;
  ~Residency();

  // The only door to a worker, for clients and idle work alike: joins the instance of the model, or
  // starts one. The observer is told exactly once how it ended, unless the claim is dropped before;
  // it must outlive the claim. `deadline` bounds the wait together with Limits::queue_timeout.
  // Errors (through on_claim_failed): the model's problem, kQueueFull, kLoadFailed with evidence,
  // kInsufficientMemory, kNoRoom, kDeadline, kShuttingDown. As long as a failure of the model
  // stands it is kLoadFailed at once (L22); an operator's request lifts it.
  [[nodiscard]] std::unique_ptr<Claim> acquire(const std::shared_ptr<const catalog::Model>& model,
                                               RequestClass request_class, SteadyTime deadline,
                                               ClaimObserver& observer);

  // Stops the model's instance and answers when its process is gone; a load is interrupted. With
  // `force`, requests that run or wait end with kConflict. Requests that come later wait until the
  // process is gone and then load the model again (T19). Errors: kNotFound (not resident),
  // kConflict (requests run or wait or it is pinned, and not `force`), kInternal (stuck),
  // kQueueFull (256 such calls wait already).
  void unload(const std::string& model, bool force,
              std::function<void(Result<UnloadOutcome>)> done);

  // Keeps the model, once it is loaded, from being unloaded for idleness or for others (M16), until
  // unpin() or the end of the program; loads nothing. Errors: kInsufficientMemory, kNoRoom where it
  // does not fit beside all that is pinned; kLoadFailed with the model's problem.
  [[nodiscard]] Status pin(const std::shared_ptr<const catalog::Model>& model);
  // Whether it was pinned so. One that the configuration pins stays so, as long as it does.
  bool unpin(const std::string& model);
  [[nodiscard]] bool pinned(const std::string& model) const;
  // The configuration does, whatever was pinned or unpinned by hand.
  [[nodiscard]] bool pinned_by_configuration(const std::string& model) const;
  // Of each model that the configuration pins and that does not fit beside what else is pinned,
  // those before it in the order of names: what is wrong, a sentence or two.
  [[nodiscard]] std::vector<std::string> pin_problems() const;

  // Whether a load of the model can succeed, as far as its files tell (MemoryAccess::check).
  // Answered once, never from within.
  void check(const std::shared_ptr<const catalog::Model>& model, std::function<void(Status)> done);

  // Other waits for room, from now on: plan, swap_drain and queue_timeout of `limits`. What waits
  // already keeps its deadline.
  void use_waits(const Limits& limits);
  // What MemoryAccess shows changed: the domains, foreign use, a budget, the bank.
  void memory_changed();
  // That instance was measured to take something else than it is charged: from now on it is charged
  // this (M5). One that is stopped, or is not there, stays as it is.
  void recharge(const Uuid& instance, const MeasuredCharge& charge);
  // The book of charges as the planner sees it now. Without domains: empty.
  [[nodiscard]] core::Snapshot memory_now() const;
  // What would be done for a client that asked for that model now (M7), by the functions that do
  // it: nothing is done. `anew`: as if its own instance were gone, for settings that it does not
  // have.
  [[nodiscard]] PlanReport plan(const catalog::Model& model, bool anew = false) const;
  // Who waits for memory, the oldest first.
  [[nodiscard]] std::vector<RoomWait> room_waits() const;
  [[nodiscard]] const RoomCounters& room_counters() const;

  // Why the stream of a request on that instance broke: waits for the evidence of the exit, at most
  // 1 s, and answers with kWorkerDied, kShuttingDown or kConflict (unloaded by force). When this
  // side ends a request, its sink gets kWorkerDied too, so that one question serves all.
  void explain_break(const std::string& instance_id, std::function<void(Error)> done);

  // Gives back what earlier runs learned of models that cannot be loaded; `done` is called when
  // that is judged (L21, L23), or after 5 s where the store does not answer: then it is judged
  // later, and an event says so. Once, before the first acquire().
  void restore_failures(std::function<void()> done);
  // The catalogue or the config changed: failures whose provenance moved are lifted (L23), and what
  // it pins is pinned from now on, and nothing else (M16).
  void catalog_changed();
  // Lifts the model's failure by hand, so that the next request tries it again. What it was;
  // absent: none stood. `who` may be empty.
  std::optional<core::FailureRecord> retry(const std::string& model, const std::string& who);
  // Every failure that stands, by model.
  [[nodiscard]] std::vector<core::FailureRecord> standing_failures() const;

  // Every instance that exists, by start.
  [[nodiscard]] std::vector<InstanceSnapshot> instances() const;
  // Everyone who waits, by model and position.
  [[nodiscard]] std::vector<QueuedWaiter> waiters() const;
  // "absent" or the state of the model's instance.
  [[nodiscard]] std::string state_of(const std::string& model) const;
  [[nodiscard]] ModelNow now_of(const catalog::Model& model) const;

  // Refuses new work at once; waits until every lease is back, at most `drain`, then ends the rest
  // (explain_break() says kShuttingDown) and stops every process. Answers when all are gone or
  // stuck. A second call may shorten the first one's drain.
  void shutdown(Duration drain, std::function<void()> done);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::residency
