#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/event.h"
#include "supervisor/admin/server_state.h"
#include "supervisor/residency/request_book.h"

namespace berth::admin {

enum class MetricKind : std::uint8_t { kCounter, kGauge, kHistogram };

// One row of the catalogue (metrics.def), for docs and checks.
struct MetricInfo {
  std::string_view name;
  MetricKind kind;
  std::string_view labels;  // "model, reason"
  std::string_view help;
};
const std::vector<MetricInfo>& metric_catalogue();

// What /metrics says. Counters and histograms are fed by what happens, gauges are read when someone
// asks; asking wakes nothing and keeps nothing. Lives longer than the event hub and the request
// book that feed it.
class Metrics {
 public:
  // Different models that get series of their own; those beyond are counted together, with an empty
  // name. The catalogue bounds the names, but over a long life files come and go.
  static constexpr std::size_t kMostModels = 1000;
  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

  explicit Metrics(const Clock& clock);
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  ~Metrics();

  // For EventHub::add_outlet(). Any thread, one at a time.
  void on_event(const Event& event);
  // For RequestBook::on_end(). Core strand.
  void on_request_end(const residency::RequestRecord& record);

  // The text for a scrape. Any thread; `done` on the pool. On the core strand it copies what there
  // is, well below a millisecond.
  void scrape(ServerState& state, std::function<void(std::string)> done);

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;  // a scrape may still run
};

}  // namespace berth::admin
