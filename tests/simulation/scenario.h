#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/uuid.h"
#include "supervisor/catalog/model.h"
#include "supervisor/core/memory/domain.h"
#include "supervisor/core/memory/snapshot.h"
#include "supervisor/residency/request_book.h"
#include "supervisor/residency/residency.h"
#include "tests/simulation/event_order.h"
#include "tests/simulation/memory_oracle.h"
#include "tests/simulation/random.h"
#include "tests/simulation/record_check.h"
#include "tests/simulation/sim_request.h"
#include "tests/simulation/sim_world.h"
#include "tests/simulation/turn_oracle.h"

namespace berth::sim {

struct ScenarioResult {
  std::string violation;  // empty: all is well
  std::uint64_t fingerprint = 0;
  std::size_t loads = 0;
  std::size_t requests = 0;
  // What was reached: events with their causes, answers, states. A world that never gets into
  // trouble proves nothing.
  std::map<std::string, std::uint64_t> reached;
};

// What a few hundred seeds must have reached.
const std::vector<std::string>& expected_reach();

// One seeded life of a small supervisor: one to three models whose workers load, fail and die;
// clients that come, hang up, retry and have deadlines; unloads, suspends and a shutdown at random
// moments. The invariants of spec 2 are checked after every step. Afterwards the faults stop and
// everything must come to rest within the sum of the named deadlines.
class Scenario {
 public:
  // `trace`: print what happens to standard output.
  Scenario(std::uint64_t seed, std::size_t steps, bool trace);
  Scenario(const Scenario&) = delete;
  Scenario& operator=(const Scenario&) = delete;
  ~Scenario();

  ScenarioResult run();

 private:
  // What a call that ends later is owed.
  struct Owed {
    std::string what;
    SteadyTime until{};
    int answers = 0;
  };

  // Idle work that runs.
  struct Job {
    core::IdleJob idle;
    SimRequest* request = nullptr;
    std::optional<SteadyTime> until{};  // it was told to yield, and may take until then
    Timer yields{};
  };

  WorkerScript draw_script(const std::string& model);
  void draw_log(WorkerScript& script);
  [[nodiscard]] bool log_told_of_the_end(const SimWorker& worker) const;
  void draw_memory();
  void change_memory();
  // What a process was measured to take; absent: as it was predicted, or it has died.
  [[nodiscard]] std::optional<residency::MeasuredCharge> measure(const Uuid& instance);
  void measure_something();
  void notice_return(const std::string& instance);
  void pin_something();
  [[nodiscard]] core::DomainBytes free_memory() const;
  void begin_job();
  void tell_to_yield(const std::vector<Uuid>& ids);
  // Of the request, or on the instance.
  void end_job(const SimRequest* request, const std::string& instance);
  void grow_bank();
  void change_settings();
  void act_seldom();
  void show_memory();
  // Foreign use goes, and nothing is pinned any more.
  void calm_memory();
  [[nodiscard]] std::set<std::string> due_models() const;
  void act();
  void new_request(const std::shared_ptr<const catalog::Model>& model);
  void unload(const std::string& model, bool force);
  void shut_down(Duration drain);
  void kill_some_worker();
  void pass_time(Duration most);
  void come_to_rest();
  void destroy_early();
  void check_step();
  void check_quiet();
  void check_processes();
  void check_owed();
  void on_event(const Event& event);
  void violate(const std::string& what);
  void say(const std::string& what);
  std::shared_ptr<Owed> owe(std::string what, Duration within);
  [[nodiscard]] SimRequest* some_request();

  const std::size_t steps_;
  const bool trace_;
  Random random_;
  SimWorld world_;
  residency::Limits limits_;
  std::vector<std::shared_ptr<const catalog::Model>> models_;
  residency::RequestBook book_{world_.clock, world_.events};
  std::vector<std::shared_ptr<residency::RequestEntry>> tenants_;  // empty: nobody is known
  EventOrder order_{world_.clock};
  RecordCheck records_{world_};
  std::unique_ptr<MemoryOracle> oracle_;
  std::unique_ptr<residency::Residency> residency_;
  std::unique_ptr<SimRequest::Client> client_;
  std::vector<std::unique_ptr<SimRequest>> requests_;
  TurnOracle turns_{world_.clock, requests_};
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<std::shared_ptr<Owed>> owed_;
  std::map<std::string, std::uint32_t> active_before_;  // by instance
  std::string ordering_;  // the model that is being unloaded right now, or "*" at shutdown
  bool calm_ = false;
  bool shutting_down_ = false;
  bool shut_down_ = false;
  std::size_t made_ = 0;
  std::string violation_;
  std::map<std::string, std::uint64_t> reached_;
};

}  // namespace berth::sim
