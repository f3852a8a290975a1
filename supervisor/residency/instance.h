#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "common/uuid.h"
#include "supervisor/catalog/model.h"
#include "supervisor/core/instance_machine.h"
#include "supervisor/core/ledger/failure_record.h"
#include "supervisor/core/progress.h"
#include "supervisor/core/waiters.h"
#include "supervisor/process/launcher.h"
#include "supervisor/process/log_watch.h"
#include "supervisor/residency/evidence.h"
#include "supervisor/residency/load_basis.h"
#include "supervisor/residency/load_guard.h"
#include "supervisor/residency/residency.h"
#include "supervisor/residency/work_guard.h"
#include "supervisor/residency/worker_handle.h"
#include "supervisor/rpc/worker_client.h"
#include "supervisor/store/store.h"

namespace berth::residency {

class Instance;

// Who uses an instance, and when (M8, I2).
struct InstanceUse {
  std::uint32_t clients = 0;  // leases of clients and operators
  std::uint32_t soft = 0;     // leases of idle work
  SteadyTime idle_since{};    // since it was ready, or the last client's work on it ended
  SteadyTime last_used{};     // by a client; or since it exists
  bool last_by_idle_work = false;
};

// Whom an instance tells what became of it. Core strand; called in the middle of a change, so
// nothing of it may reach a client from within (answers are posted).
class InstanceHost {
 public:
  InstanceHost() = default;
  InstanceHost(const InstanceHost&) = delete;
  InstanceHost& operator=(const InstanceHost&) = delete;
  virtual ~InstanceHost() = default;

  // What its launch needs was looked at, whether it can be launched or not.
  virtual LoadBasis on_instance_prepared(Instance& instance) = 0;
  virtual void on_instance_ready(Instance& instance) = 0;
  // It serves no one any more, or never will.
  virtual void on_instance_unavailable(Instance& instance) = 0;
  virtual void on_instance_progress(Instance& instance) = 0;
  virtual void on_load_failed(Instance& instance, const Error& error) = 0;
  virtual void on_load_interrupted(Instance& instance) = 0;
  // The last call of each change: look at its state.
  virtual void on_instance_settled(Instance& instance) = 0;
};

// One instance: executes what its machine decides. Owns the process, its connection, its timers
// and its records; every completion that comes in carries its id through Residency. Core strand;
// lives until its process is gone and everybody was told, or until the residency is destroyed
// (which kills its process). What fails becomes events, records and answers; nothing is thrown.
class Instance : public process::ChildObserver,
                 public rpc::WorkerObserver,
                 public std::enable_shared_from_this<Instance> {
 public:
  using FindInstance = std::function<std::shared_ptr<Instance>(const Uuid& id)>;

  // `find` gives an instance by its id as long as it exists. begin() comes next.
  Instance(Environment& environment, InstanceHost& host, FindInstance find,
           std::shared_ptr<const catalog::Model> model, const core::InstancePolicy& policy,
           const Uuid& id, RequestClass request_class, LaunchPlan plan = {});
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  ~Instance() override;

  void begin();

  void stop(core::StopCause cause);
  void close(core::StopCause cause, SteadyTime until);
  // It was closing, and serves again.
  void reopen();
  // Pinned, or not any more (M16).
  void pin(bool pinned);
  // A place, counted until lease_returned(). Requires free_places() > 0. `client`: not idle work.
  void grant_lease(bool client);
  void lease_returned(bool client);
  // Compute threads from now on; tells the worker only what is new to it. Requires leases.
  void use_threads(std::uint32_t threads);

  // `done` gets how the stop went; it must have been ordered.
  void await_end(std::function<void(Result<UnloadOutcome>)> done);
  // See Residency::explain_break.
  void explain_break(std::function<void(Error)> done);

  [[nodiscard]] const core::InstanceMachine& machine() const { return machine_; }
  [[nodiscard]] const catalog::Model& model() const { return *model_; }
  [[nodiscard]] const std::string& id_text() const { return id_text_; }
  // Kept after the exit; 0: there was no process.
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const std::shared_ptr<WorkerHandle>& worker() const { return worker_; }
  [[nodiscard]] const rpc::WorkerReady& ready() const { return ready_; }
  [[nodiscard]] const InstanceUse& use() const { return use_; }
  [[nodiscard]] RequestClass request_class() const { return request_class_; }
  [[nodiscard]] const LaunchPlan& plan() const { return plan_; }
  // What its load took, or has taken until now.
  [[nodiscard]] Duration load_time() const;
  [[nodiscard]] std::uint32_t free_places() const;
  [[nodiscard]] std::size_t awaiting_end() const { return end_waits_.size(); }
  // How far the load is.
  [[nodiscard]] ClaimProgress progress() const;
  [[nodiscard]] InstanceSnapshot snapshot() const;
  // Why a request on it ended; absent: nothing is known that ended it.
  [[nodiscard]] std::optional<Error> known_break() const;

  // What is kept of that failure, of this instance's load or of its life.
  [[nodiscard]] core::FailureRecord failure_record(const core::LoadFailure& failure) const;

  // Waiters of a load that failed, until its evidence is there. The host's.
  std::vector<core::Ticket>& doomed() { return doomed_; }

  // From the launcher.
  void on_notify(std::string_view line) override;
  void on_exit(core::ExitStatus status) override;
  // From the worker.
  void on_progress(const rpc::WorkerProgress& progress) override;
  void on_own_request() override;
  void on_probe(std::string_view saw) override;
  void on_ready(const rpc::WorkerReady& ready) override;
  void on_load_failed(const rpc::WorkerLoadFailed& failed) override;
  void on_heartbeat(const rpc::WorkerHeartbeat& heartbeat) override;
  void on_disconnected() override;

 private:
  struct EndWait {
    std::function<void(Result<UnloadOutcome>)> done;
    SteadyTime since{};
  };
  struct BreakWait {
    std::uint64_t key = 0;
    std::function<void(Error)> done;
    Timer timer;
  };

  void feed(const core::InstanceEvent& event);
  void perform(core::InstanceAction action);
  void arm_timer();
  void adjust_guards();
  void on_prepared(Result<PreparedLaunch> prepared);
  void guard_load(UniqueFd log);
  void watch_log(std::optional<process::LogPlace> place);
  void judge_log(const core::LogVerdict& verdict);
  void collect_log();
  void end_log_watch();
  void fetch_log_tail();
  void ask_kernel();
  void fetch_last_load_time();
  void announce_start();
  void report_ready();
  void report_failed();
  void report_interrupted();
  void report_exited();
  void tell_end_waits();
  void tell_break_waits();
  void put_record();
  [[nodiscard]] std::vector<core::FailureMemory> predicted_charges() const;
  [[nodiscard]] core::Moment now() const;
  [[nodiscard]] InstanceFacts facts() const;

  Environment& environment_;
  InstanceHost& host_;
  const FindInstance find_;
  const std::shared_ptr<const catalog::Model> model_;
  const std::string id_text_;
  const RequestClass request_class_;
  const LaunchPlan plan_;
  InstanceUse use_;

  const core::InstancePolicy policy_;
  core::InstanceMachine machine_;
  core::LoadProgress progress_;
  store::LoadRecord record_;
  bool start_announced_ = false;
  bool listened_ = false;
  std::string socket_;
  std::vector<std::string> command_;
  std::vector<std::string> variables_;  // its environment
  std::vector<std::string> log_tail_;
  rpc::WorkerReady ready_;
  rpc::WorkerProgress heard_;  // the last
  std::string standstill_;     // why it counts as wedged
  std::uint32_t told_threads_ = 0;
  float told_fraction_ = 0;
  pid_t pid_ = 0;  // kept after the exit, for the records
  std::uint64_t served_ = 0;
  std::uint64_t next_break_ = 1;
  std::vector<EndWait> end_waits_;
  std::vector<BreakWait> break_waits_;
  std::vector<core::Ticket> doomed_;

  std::shared_ptr<WorkerHandle> worker_;
  std::unique_ptr<process::ChildProcess> process_;
  Timer timer_;
  std::optional<SteadyTime> timer_at_;
  std::unique_ptr<LoadGuard> load_guard_;
  std::unique_ptr<process::LogWatch> log_watch_;
  std::unique_ptr<WorkGuard> work_guard_;
};

}  // namespace berth::residency
