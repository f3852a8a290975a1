#include "supervisor/admin/state.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/durations.h"
#include "common/version.h"
#include "supervisor/admin/memory_state.h"
#include "supervisor/core/entitlement.h"
#include "supervisor/rpc/failure_message.h"

namespace berth::admin {

// What is copied on the core strand.
struct StateCopy {
  std::shared_ptr<const catalog::Catalog> catalog;
  std::vector<residency::InstanceSnapshot> instances;
  std::vector<core::FailureRecord> standing;
  std::vector<residency::QueuedWaiter> waiters;
  std::vector<residency::RequestRecord> live;
  std::vector<residency::RequestRecord> ended;
  std::vector<DomainUse> domains;  // empty: nothing is counted
  std::vector<residency::RoomWait> room_waits;
  std::set<std::string> pinned;                 // models
  std::map<std::string, std::string> problems;  // by model; those that have one
};

namespace {

std::int64_t to_ms(WallTime time) {
  return time.time_since_epoch().count();
}

v1::ServerInfo server_info(const ServerState& state, std::size_t instances,
                           const core::Caller& caller) {
  v1::ServerInfo info;
  info.set_version(std::string(kVersion));
  info.set_build_id(std::string(kBuildId));
  info.set_started_unix_ms(to_ms(state.started));
  info.set_state(state.state());
  info.set_models(static_cast<std::uint32_t>(state.services.catalog()->models().size()));
  info.set_instances(static_cast<std::uint32_t>(instances));
  info.set_loop_lag_us(whole_microseconds(state.loop_lag()));
  info.set_http(state.http);
  if (!caller.admin()) return info;
  // Paths, and sentences that may hold some.
  info.set_pid(getpid());
  for (const std::string& address : state.grpc) info.add_grpc(address);
  info.set_config_file(state.config->file);
  info.set_state_dir(state.config->server.state_dir);
  info.set_log_dir(state.config->server.log_dir);
  for (std::string& problem : state.degraded()) *info.add_degraded() = std::move(problem);
  return info;
}

v1::RequestState request_state(const residency::RequestRecord& record, const core::Caller& caller) {
  v1::RequestState to;
  to.set_id(record.id);
  to.set_model(record.model);
  if (caller.admin()) to.set_tenant(record.tenant);
  to.set_protocol(record.protocol);
  to.set_state(std::string(request_stage_name(record.stage)));
  to.set_instance_id(record.instance_id);
  to.set_arrived_unix_ms(to_ms(record.arrived));
  if (record.admitted) to.set_admitted_unix_ms(to_ms(*record.admitted));
  if (record.first_token) to.set_first_token_unix_ms(to_ms(*record.first_token));
  if (record.ended) to.set_ended_unix_ms(to_ms(*record.ended));
  to.set_deadline_unix_ms(to_ms(record.deadline));
  to.set_prefill_done(record.prefill_done);
  to.set_prefill_total(record.prefill_total);
  to.set_tokens(record.tokens);
  to.set_reason(record.reason);
  return to;
}

v1::ModelState model_state(const catalog::Model& model) {
  v1::ModelState to;
  to.set_name(model.name);
  for (const std::string& alias : model.aliases) to.add_aliases(alias);
  to.set_state("absent");
  return to;
}

// The catalogue's models, and those that are resident though their files are gone.
class Models {
 public:
  Models(const catalog::Catalog& catalog, v1::State& to) : to_(to) {
    for (const auto& model : catalog.models()) {
      *to_.add_models() = model_state(*model);
      index_.emplace(model->name, to_.models_size() - 1);
    }
  }

  v1::ModelState& of(const std::string& name) {
    const auto [found, added] = index_.try_emplace(name, to_.models_size());
    if (added) to_.add_models()->set_name(name);
    return *to_.mutable_models(found->second);
  }

 private:
  v1::State& to_;
  std::map<std::string, int> index_;
};

void put_instances(const StateCopy& copy, const core::Caller& caller, Models& models) {
  core::Domains domains;
  for (const DomainUse& use : copy.domains) domains.push_back(use.domain);
  for (const residency::InstanceSnapshot& instance : copy.instances) {
    v1::ModelState& model = models.of(instance.model);
    // The newest comes last; one that is stuck stands only where there is no other.
    if (model.has_instance() && instance.state == "stuck") continue;
    model.set_state(instance.state);
    *model.mutable_instance() = charged_instance(instance, domains, caller);
  }
}

void put_waiters(const StateCopy& copy, const core::Caller& caller, Models& models) {
  for (const residency::QueuedWaiter& waiter : copy.waiters) {
    v1::QueuedRequest& to = *models.of(waiter.model).add_queue();
    if (caller.admin() || waiter.tenant == caller.tenant) to.set_request_id(waiter.request_id);
    to.set_position(waiter.position);
    to.set_since_unix_ms(to_ms(waiter.since));
    to.set_until_unix_ms(to_ms(waiter.until));
    if (waiter.eta) to.set_eta_ms(static_cast<std::uint64_t>(waiter.eta->count()));
  }
}

void put_requests(const std::vector<residency::RequestRecord>& records, const core::Caller& caller,
                  v1::State& to) {
  for (const residency::RequestRecord& record : records) {
    if (!caller.admin() && record.tenant != caller.tenant) continue;
    *to.add_requests() = request_state(record, caller);
  }
}

void put_domains(const ServerState& state, const StateCopy& copy, const core::Caller& caller,
                 v1::State& to) {
  for (const DomainUse& use : copy.domains) *to.add_domains() = to_proto(use, caller);
  if (!copy.domains.empty()) return;
  for (const DomainMemory& domain : state.domains()) *to.add_domains() = to_proto(domain);
}

void put_plan(const StateCopy& copy, Models& models) {
  for (const std::string& name : copy.pinned) models.of(name).set_pinned(true);
  for (const residency::RoomWait& wait : copy.room_waits) {
    models.of(wait.model).set_waits_for(wait.what);
  }
}

pid_t pid_of(const std::vector<residency::InstanceSnapshot>& instances, const std::string& id) {
  const auto found = std::ranges::find(instances, id, &residency::InstanceSnapshot::id);
  return found == instances.end() ? 0 : found->pid;
}

// On the pool.
void complete(const ServerState& state, const StateCopy& copy, const core::Caller& caller,
              v1::State& to) {
  Models models(*copy.catalog, to);
  for (const auto& [model, problem] : copy.problems) {
    models.of(model).set_problem(core::model_problem_for(problem, caller));
  }
  put_instances(copy, caller, models);
  for (const core::FailureRecord& record : copy.standing) {
    v1::ModelState& model = models.of(record.model);
    *model.mutable_failure() = rpc::to_brief(record, caller);
    if (model.state() == "absent" || model.state().empty()) model.set_state("failed");
  }
  put_waiters(copy, caller, models);
  put_requests(copy.live, caller, to);
  put_requests(copy.ended, caller, to);
  put_domains(state, copy, caller, to);
  put_plan(copy, models);
  to.mutable_server()->set_resident_bytes(state.process_memory(getpid()));
  for (v1::ModelState& model : *to.mutable_models()) {
    if (!model.has_instance()) continue;
    const pid_t pid = pid_of(copy.instances, model.instance().id());
    if (pid > 0) model.mutable_instance()->set_resident_bytes(state.tree_memory(pid));
  }
}

// Whose requests he sees; absent: everybody's.
std::optional<std::string> tenant_of(const core::Caller& caller) {
  return caller.admin() ? std::nullopt : std::optional(caller.tenant);
}

// Of all requests, or of one tenant's. Core strand.
std::shared_ptr<const StateCopy> copy_of(const ServerState& state,
                                         const std::optional<std::string>& tenant) {
  const residency::Services& services = state.services;
  auto copy = std::make_shared<StateCopy>();
  copy->catalog = services.catalog();
  copy->instances = services.residency.instances();
  copy->standing = services.residency.standing_failures();
  copy->live = services.requests.live(tenant);
  copy->ended = services.requests.ended(tenant);
  copy->waiters = services.residency.waiters();
  copy->domains = domain_use(services.residency.memory_now(), copy->instances);
  copy->room_waits = services.residency.room_waits();
  for (const auto& model : copy->catalog->models()) {
    if (services.residency.pinned(model->name)) copy->pinned.insert(model->name);
    std::string problem = services.residency.now_of(*model).problem;
    if (!problem.empty()) copy->problems.emplace(model->name, std::move(problem));
  }
  return copy;
}

void show(ServerState& state, const std::shared_ptr<const StateCopy>& copy,
          const core::Caller& caller, const std::function<void(v1::State)>& done) {
  auto to = std::make_shared<v1::State>();
  *to->mutable_server() = server_info(state, copy->instances.size(), caller);
  state.run_blocking([&state, copy, to, caller, done] {
    complete(state, *copy, caller, *to);
    done(std::move(*to));
  });
}

}  // namespace

void get_state(ServerState& state, core::Caller caller, std::function<void(v1::State)> done) {
  state.services.clock.post([&state, caller = std::move(caller), done = std::move(done)] {
    show(state, copy_of(state, tenant_of(caller)), caller, done);
  });
}

void get_shared_state(ServerState& state, core::Caller caller,
                      std::function<void(v1::State)> done) {
  state.services.clock.post([&state, caller = std::move(caller), done = std::move(done)] {
    const SteadyTime now = state.services.clock.now();
    std::erase_if(state.shared_copies,
                  [now](const auto& one) { return now - one.second.since >= kSharedFor; });
    SharedCopy& shared = state.shared_copies[caller.admin() ? "" : caller.tenant];
    if (!shared.copy) shared = {copy_of(state, tenant_of(caller)), now};
    show(state, shared.copy, caller, done);
  });
}

void get_server_info(ServerState& state, core::Caller caller,
                     std::function<void(v1::ServerInfo)> done) {
  state.services.clock.post([&state, caller = std::move(caller), done = std::move(done)] {
    state.run_blocking(
        [&state, info = server_info(state, state.services.residency.instances().size(), caller),
         done]() mutable {
          info.set_resident_bytes(state.process_memory(getpid()));
          done(std::move(info));
        });
  });
}

void list_instances(ServerState& state, core::Caller caller,
                    std::function<void(v1::ListInstancesResponse)> done) {
  state.services.clock.post([&state, caller = std::move(caller), done = std::move(done)] {
    state.run_blocking([&state, caller, done, instances = state.services.residency.instances(),
                        domains = state.services.residency.memory_now().domains] {
      v1::ListInstancesResponse response;
      for (const residency::InstanceSnapshot& instance : instances) {
        v1::Instance& to = *response.add_instances();
        to = charged_instance(instance, domains, caller);
        if (instance.pid > 0) to.set_resident_bytes(state.tree_memory(instance.pid));
      }
      done(std::move(response));
    });
  });
}

}  // namespace berth::admin
