#include "supervisor/admin/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <variant>

#include "supervisor/admin/metrics_gauges.h"

namespace berth::admin {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Histogram;

// Between the start of an instance and its end or readiness; more than there ever are at once.
constexpr std::size_t kMostLoads = 256;

const Histogram::BucketBoundaries& seconds_buckets() {
  // A request with a hot model takes milliseconds, one that waits for a load takes minutes.
  static const Histogram::BucketBoundaries buckets = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
                                                      2.5,   5,    10,    30,   60,  300,  1800};
  return buckets;
}

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::string text_of(const Event& event, std::string_view name) {
  for (const EventField& field : event.fields) {
    const auto* text = std::get_if<std::string>(&field.value);
    if (field.name == name && text != nullptr) return *text;
  }
  return {};
}

double number_of(const Event& event, std::string_view name) {
  for (const EventField& field : event.fields) {
    const auto* number = std::get_if<std::int64_t>(&field.value);
    if (field.name == name && number != nullptr) return static_cast<double>(*number);
  }
  return 0;
}

}  // namespace

const std::vector<MetricInfo>& metric_catalogue() {
  static const std::vector<MetricInfo> catalogue = {
#define BERTH_METRIC(id, name, kind, labels, help) MetricInfo{name, MetricKind::kind, labels, help},
#include "supervisor/admin/metrics.def"
#undef BERTH_METRIC
  };
  return catalogue;
}

// Its counters are thread-safe; the rest belongs to the event hub's lock.
class Metrics::Impl {
 public:
  explicit Impl(const Clock& clock) : clock_(clock) { log_dropped_.Add({}); }

  void on_event(const Event& event);
  void on_request_end(const residency::RequestRecord& record);
  [[nodiscard]] std::vector<prometheus::MetricFamily> collect() { return registry_.Collect(); }

 private:
  // How far a load is.
  struct Load {
    std::string phase;
    SteadyTime began{};
    SteadyTime phase_began{};
    std::map<std::string, Duration> phases;
  };

  Family<Counter>& counters(MetricId id) {
    const MetricInfo& info = metric_info(id);
    return prometheus::BuildCounter()
        .Name(std::string(info.name))
        .Help(std::string(info.help))
        .Register(registry_);
  }
  Family<Histogram>& histograms(MetricId id) {
    const MetricInfo& info = metric_info(id);
    return prometheus::BuildHistogram()
        .Name(std::string(info.name))
        .Help(std::string(info.help))
        .Register(registry_);
  }
  void observe(Family<Histogram>& family, const prometheus::Labels& labels, Duration duration) {
    family.Add(labels, seconds_buckets()).Observe(seconds(duration));
  }

  std::string bounded(const std::string& model);
  void on_load_event(const Event& event, const std::string& model);
  void on_phase(Load& load, const std::string& phase);

  const Clock& clock_;
  prometheus::Registry registry_;
  Family<Counter>& requests_ = counters(MetricId::kRequests);
  Family<Histogram>& queue_ = histograms(MetricId::kQueueSeconds);
  Family<Histogram>& first_token_ = histograms(MetricId::kFirstTokenSeconds);
  Family<Histogram>& took_ = histograms(MetricId::kRequestSeconds);
  Family<Counter>& prompt_ = counters(MetricId::kPromptTokens);
  Family<Counter>& cached_ = counters(MetricId::kCachedTokens);
  Family<Counter>& completion_ = counters(MetricId::kCompletionTokens);
  Family<Counter>& loads_total_ = counters(MetricId::kLoads);
  Family<Histogram>& load_ = histograms(MetricId::kLoadSeconds);
  Family<Histogram>& load_phase_ = histograms(MetricId::kLoadPhaseSeconds);
  Family<Counter>& failures_ = counters(MetricId::kLoadFailures);
  Family<Counter>& deaths_ = counters(MetricId::kInstanceDeaths);
  Family<Counter>& log_dropped_ = counters(MetricId::kLogDropped);

  std::mutex models_mutex_;
  std::set<std::string> models_;
  std::map<std::string, Load> loads_;  // by instance
};

std::string Metrics::Impl::bounded(const std::string& model) {
  const std::lock_guard lock(models_mutex_);
  if (models_.contains(model)) return model;
  if (models_.size() >= kMostModels) return {};
  models_.insert(model);
  return model;
}

void Metrics::Impl::on_request_end(const residency::RequestRecord& record) {
  const std::string model = bounded(record.model);
  const prometheus::Labels by_model = {{"model", model}};
  std::string reason = record.reason;
  if (reason.empty()) reason = request_stage_name(record.stage);
  requests_.Add({{"model", model}, {"reason", reason}})
      .Increment(static_cast<double>(record.alike));
  if (record.to_place) observe(queue_, by_model, *record.to_place);
  if (record.to_first_token) observe(first_token_, by_model, *record.to_first_token);
  if (record.stage != residency::RequestStage::kFinished) return;
  if (record.took) observe(took_, by_model, *record.took);
  if (!record.usage) return;
  prompt_.Add(by_model).Increment(record.usage->prompt);
  cached_.Add(by_model).Increment(record.usage->cached);
  completion_.Add(by_model).Increment(record.usage->completion);
}

void Metrics::Impl::on_event(const Event& event) {
  if (event.name == "log.dropped") {
    log_dropped_.Add({}).Increment(number_of(event, "lines"));
  } else if (event.name == "instance.died") {
    deaths_.Add({{"model", bounded(text_of(event, "model"))}}).Increment();
  } else if (event.name.starts_with("load.")) {
    on_load_event(event, bounded(text_of(event, "model")));
  }
}

void Metrics::Impl::on_load_event(const Event& event, const std::string& model) {
  const std::string instance = text_of(event, "instance");
  const SteadyTime now = clock_.now();
  if (event.name == "load.started") {
    if (loads_.size() >= kMostLoads) loads_.erase(loads_.begin());
    loads_[instance] = {"starting", now, now, {}};
    return;
  }
  const auto found = loads_.find(instance);
  if (event.name == "load.progress") {
    if (found != loads_.end()) on_phase(found->second, text_of(event, "phase"));
    return;
  }
  const std::string outcome(event.name.substr(std::string_view("load.").size()));
  if (outcome != "ready" && outcome != "failed" && outcome != "interrupted") return;
  loads_total_.Add({{"model", model}, {"outcome", outcome}}).Increment();
  if (outcome == "failed") {
    failures_.Add({{"model", model}, {"class", text_of(event, "failure_class")}}).Increment();
  }
  if (found == loads_.end()) return;
  if (outcome == "ready") {
    on_phase(found->second, {});
    observe(load_, {{"model", model}}, now - found->second.began);
    for (const auto& [phase, took] : found->second.phases) {
      observe(load_phase_, {{"model", model}, {"phase", phase}}, took);
    }
  }
  loads_.erase(found);
}

void Metrics::Impl::on_phase(Load& load, const std::string& phase) {
  // A worker names its phases, and it may be a program that is not ours.
  constexpr std::array<std::string_view, 4> kPhases = {"starting", "weights", "context", "warmup"};
  if (phase == load.phase) return;
  const SteadyTime now = clock_.now();
  for (const std::string_view known : kPhases) {
    if (load.phase == known) load.phases[load.phase] += now - load.phase_began;
  }
  load.phase = phase;
  load.phase_began = now;
}

Metrics::Metrics(const Clock& clock) : impl_(std::make_shared<Impl>(clock)) {}

Metrics::~Metrics() = default;

void Metrics::on_event(const Event& event) {
  impl_->on_event(event);
}

void Metrics::on_request_end(const residency::RequestRecord& record) {
  impl_->on_request_end(record);
}

void Metrics::scrape(ServerState& state, std::function<void(std::string)> done) {
  state.services.clock.post([&state, impl = impl_, done = std::move(done)] {
    auto copy = std::make_shared<GaugeCopy>(copy_gauges(state));
    state.run_blocking([&state, impl, copy, done] {
      std::vector<prometheus::MetricFamily> families = impl->collect();
      add_gauges(state, *copy, families);
      done(prometheus::TextSerializer().Serialize(families));
    });
  });
}

}  // namespace berth::admin
