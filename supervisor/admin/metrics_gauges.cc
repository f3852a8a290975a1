#include "supervisor/admin/metrics_gauges.h"

#include <prometheus/client_metric.h>
#include <prometheus/metric_type.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "common/version.h"
#include "supervisor/core/instance_state.h"

namespace berth::admin {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

// One gauge, or counter that is kept elsewhere, with its series.
class Gauge {
 public:
  explicit Gauge(MetricId id) {
    const MetricInfo& info = metric_info(id);
    family_.name = info.name;
    family_.help = info.help;
    family_.type = info.kind == MetricKind::kCounter ? prometheus::MetricType::Counter
                                                     : prometheus::MetricType::Gauge;
  }
  void set(double value, const Labels& labels = {}) {
    prometheus::ClientMetric& metric = family_.metric.emplace_back();
    if (family_.type == prometheus::MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
    for (const auto& [name, text] : labels) metric.label.push_back({name, text});
  }
  prometheus::MetricFamily take() { return std::move(family_); }

 private:
  prometheus::MetricFamily family_;
};

prometheus::MetricFamily single(MetricId id, double value, const Labels& labels = {}) {
  Gauge gauge(id);
  gauge.set(value, labels);
  return gauge.take();
}

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

prometheus::MetricFamily requests(const GaugeCopy& copy) {
  Gauge gauge(MetricId::kRequestsNow);
  for (std::size_t i = 0; i < copy.requests.size(); ++i) {
    const auto stage = static_cast<residency::RequestStage>(i);
    gauge.set(static_cast<double>(copy.requests.at(i)),
              {{"state", std::string(residency::request_stage_name(stage))}});
  }
  return gauge.take();
}

// Every state, so that one that is left is 0 and not gone.
prometheus::MetricFamily instances(const GaugeCopy& copy) {
  constexpr std::array kStates = {core::InstanceState::kStarting, core::InstanceState::kLoading,
                                  core::InstanceState::kReady,    core::InstanceState::kBusy,
                                  core::InstanceState::kClosing,  core::InstanceState::kDraining,
                                  core::InstanceState::kStopping, core::InstanceState::kStuck};
  Gauge gauge(MetricId::kInstances);
  for (const core::InstanceState state : kStates) {
    const std::string_view name = core::info(state).name;
    const auto count = std::ranges::count(copy.instances, name, [](const auto& instance) {
      return std::string_view(instance.state);
    });
    gauge.set(static_cast<double>(count), {{"state", std::string(name)}});
  }
  return gauge.take();
}

void add_memory_of_models(const ServerState& state, const GaugeCopy& copy,
                          std::vector<prometheus::MetricFamily>& to) {
  struct Sum {
    double resident = 0;
    double weights = 0;
    double kv = 0;
    double working = 0;
  };
  std::map<std::string, Sum> sums;
  for (const residency::InstanceSnapshot& instance : copy.instances) {
    Sum& sum = sums[instance.model];
    if (instance.pid > 0) sum.resident += static_cast<double>(state.tree_memory(instance.pid));
    sum.weights += static_cast<double>(instance.weights_bytes);
    sum.kv += static_cast<double>(instance.kv_bytes);
    sum.working += static_cast<double>(instance.working_bytes);
  }
  Gauge resident(MetricId::kResidentBytes);
  Gauge allocated(MetricId::kAllocatedBytes);
  for (const auto& [model, sum] : sums) {
    resident.set(sum.resident, {{"model", model}});
    allocated.set(sum.weights, {{"model", model}, {"part", "weights"}});
    allocated.set(sum.kv, {{"model", model}, {"part", "kv"}});
    allocated.set(sum.working, {{"model", model}, {"part", "working"}});
  }
  if (sums.empty()) return;
  to.push_back(resident.take());
  to.push_back(allocated.take());
}

void add_charges(const GaugeCopy& copy, std::vector<prometheus::MetricFamily>& to) {
  std::map<std::pair<std::string, std::string>, double> sums;  // by model and domain
  for (const residency::InstanceSnapshot& instance : copy.instances) {
    for (core::DomainIndex i = 0; i < copy.domains.size(); ++i) {
      if (instance.charge[i] == 0) continue;
      sums[{instance.model, copy.domains[i].domain.id}] += static_cast<double>(instance.charge[i]);
    }
  }
  Gauge charged(MetricId::kChargedBytes);
  for (const auto& [key, bytes] : sums) {
    charged.set(bytes, {{"model", key.first}, {"domain", key.second}});
  }
  if (!sums.empty()) to.push_back(charged.take());
}

void add_plan_of_domains(const GaugeCopy& copy, std::vector<prometheus::MetricFamily>& to) {
  Gauge total(MetricId::kMemoryTotal);
  Gauge available(MetricId::kMemoryAvailable);
  Gauge budget(MetricId::kMemoryBudget);
  Gauge limit(MetricId::kMemoryLimit);
  Gauge foreign(MetricId::kMemoryForeign);
  Gauge bank(MetricId::kMemoryBank);
  Gauge charged(MetricId::kMemoryCharged);
  for (const DomainUse& use : copy.domains) {
    const std::string& id = use.domain.id;
    const auto put = [&id](Gauge& gauge, std::uint64_t bytes) {
      gauge.set(static_cast<double>(bytes), {{"domain", id}});
    };
    put(total, use.domain.total);
    put(available, use.available);
    put(budget, use.domain.budget);
    put(limit, use.domain.limit());
    put(foreign, use.domain.foreign);
    put(bank, use.bank);
    const auto part = [&](const char* name, std::uint64_t bytes) {
      charged.set(static_cast<double>(bytes), {{"domain", id}, {"part", name}});
    };
    part("weights", use.charged.weights);
    part("kv", use.charged.kv);
    part("working", use.charged.working);
    part("overhead", use.charged.overhead);
  }
  for (Gauge* const gauge : {&total, &available, &budget, &limit, &foreign, &charged, &bank}) {
    to.push_back(gauge->take());
  }
}

// Every cause and kind, so that one that never was is 0.
void add_room(const GaugeCopy& copy, std::vector<prometheus::MetricFamily>& to) {
  const auto counted = [](const std::map<std::string, std::uint64_t>& by, const std::string& name) {
    const auto found = by.find(name);
    return found == by.end() ? 0.0 : static_cast<double>(found->second);
  };
  Gauge evictions(MetricId::kEvictions);
  for (const char* const cause : {"idle", "abandoned_load", "idle_work", "closing"}) {
    evictions.set(counted(copy.room.evictions, cause), {{"cause", cause}});
  }
  to.push_back(evictions.take());
  to.push_back(single(MetricId::kSwapsAvoided, static_cast<double>(copy.room.swaps_avoided)));
  to.push_back(single(MetricId::kLongestWait, seconds(copy.room.worst_wait)));
  Gauge refusals(MetricId::kMemoryRefusals);
  for (std::uint8_t i = 0; i <= static_cast<std::uint8_t>(core::RefuseWhy::kForeign); ++i) {
    const std::string why(core::refusal_name(static_cast<core::RefuseWhy>(i)));
    refusals.set(counted(copy.room.refusals, why), {{"why", why}});
  }
  to.push_back(refusals.take());
}

void add_memory_of_domains(const ServerState& state, const GaugeCopy& copy,
                           std::vector<prometheus::MetricFamily>& to) {
  add_room(copy, to);
  if (copy.pressure) {
    to.push_back(single(MetricId::kPressureLevel, static_cast<double>(*copy.pressure)));
  }
  if (!copy.domains.empty()) {
    add_charges(copy, to);
    return add_plan_of_domains(copy, to);
  }
  Gauge total(MetricId::kMemoryTotal);
  Gauge available(MetricId::kMemoryAvailable);
  for (const DomainMemory& domain : state.domains()) {
    if (domain.total) total.set(static_cast<double>(*domain.total), {{"domain", domain.id}});
    if (domain.available) {
      available.set(static_cast<double>(*domain.available), {{"domain", domain.id}});
    }
  }
  to.push_back(total.take());
  to.push_back(available.take());
}

void add_ratios(const GaugeCopy& copy, std::vector<prometheus::MetricFamily>& to) {
  if (copy.ratios.empty()) return;
  Gauge ratio(MetricId::kPredictedToActual);
  for (const core::LoadRatio& one : copy.ratios) {
    ratio.set(one.predicted_to_actual, {{"model", one.model}, {"domain", one.domain}});
  }
  to.push_back(ratio.take());
}

}  // namespace

GaugeCopy copy_gauges(const ServerState& state) {
  const residency::Services& services = state.services;
  GaugeCopy copy;
  copy.instances = services.residency.instances();
  copy.requests = services.requests.counts();
  const std::shared_ptr<const catalog::Catalog> catalog = services.catalog();
  copy.models = catalog->models().size();
  // Nobody is refused for one whose model is gone.
  for (const core::FailureRecord& record : services.residency.standing_failures()) {
    if (catalog->find(record.model)) ++copy.standing;
  }
  copy.loop_lag = state.loop_lag();
  // Those of models that are gone are kept for when they come back.
  if (state.load_ratios) copy.ratios = state.load_ratios();
  std::erase_if(copy.ratios,
                [&](const core::LoadRatio& ratio) { return !catalog->find(ratio.model); });
  copy.domains = domain_use(services.residency.memory_now(), copy.instances);
  copy.room = services.residency.room_counters();
  if (state.pressure) {
    if (const auto pressure = state.pressure()) copy.pressure = pressure->level;
  }
  const std::optional<SteadyTime> oldest = services.requests.oldest_waiting();
  if (oldest) copy.worst_wait = services.clock.now() - *oldest;
  return copy;
}

void add_gauges(const ServerState& state, const GaugeCopy& copy,
                std::vector<prometheus::MetricFamily>& to) {
  to.push_back(requests(copy));
  to.push_back(single(MetricId::kWorstWait, seconds(copy.worst_wait)));
  to.push_back(single(MetricId::kStandingFailures, static_cast<double>(copy.standing)));
  to.push_back(instances(copy));
  const auto stuck = std::ranges::count(copy.instances, "stuck", [](const auto& instance) {
    return std::string_view(instance.state);
  });
  to.push_back(single(MetricId::kInstancesStuck, static_cast<double>(stuck)));
  add_memory_of_models(state, copy, to);
  add_memory_of_domains(state, copy, to);
  add_ratios(copy, to);
  to.push_back(single(MetricId::kBuildInfo, 1,
                      {{"version", std::string(kVersion)}, {"build_id", std::string(kBuildId)}}));
  to.push_back(single(MetricId::kStartTime,
                      std::chrono::duration<double>(state.started.time_since_epoch()).count()));
  to.push_back(single(MetricId::kServerBytes, static_cast<double>(state.process_memory(getpid()))));
  to.push_back(single(MetricId::kLoopLag, seconds(copy.loop_lag)));
  to.push_back(single(MetricId::kModels, static_cast<double>(copy.models)));
}

}  // namespace berth::admin
