#pragma once

#include <prometheus/metric_family.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/clock.h"
#include "supervisor/admin/memory_state.h"
#include "supervisor/admin/metrics.h"
#include "supervisor/admin/server_state.h"
#include "supervisor/residency/residency.h"

namespace berth::admin {

// The rows of the catalogue.
enum class MetricId : std::uint8_t {
#define BERTH_METRIC(id, name, kind, labels, help) id,
#include "supervisor/admin/metrics.def"
#undef BERTH_METRIC
};

inline const MetricInfo& metric_info(MetricId id) {
  return metric_catalogue().at(static_cast<std::size_t>(id));
}

// What the gauges and the counters of the memory plan say, as it is copied on the core strand.
struct GaugeCopy {
  std::vector<residency::InstanceSnapshot> instances;
  std::vector<core::LoadRatio> ratios;
  std::array<std::size_t, 4> requests{};
  std::size_t models = 0;
  std::size_t standing = 0;
  Duration loop_lag{};
  Duration worst_wait{};
  std::vector<DomainUse> domains;  // empty: nothing is counted
  residency::RoomCounters room;
  std::optional<core::PressureLevel> pressure;  // absent: not known
};
GaugeCopy copy_gauges(const ServerState& state);

// Adds all of them. On the pool: reads the kernel's files.
void add_gauges(const ServerState& state, const GaugeCopy& copy,
                std::vector<prometheus::MetricFamily>& to);

}  // namespace berth::admin
