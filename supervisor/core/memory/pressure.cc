#include "supervisor/core/memory/pressure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

namespace berth::core {
namespace {

constexpr double kStallPercent = 10;
constexpr double kAvailableWarning = 8;
constexpr double kAvailableCritical = 4;
constexpr double kDeviceFreeWarning = 3;
constexpr double kUseWarning = 0.97;
constexpr double kUseCritical = 1.02;

constexpr std::array<std::string_view, 3> kLevelNames = {"normal", "warning", "critical"};
static_assert(kLevelNames.size() == static_cast<std::size_t>(PressureLevel::kCritical) + 1);
constexpr std::array<std::string_view, 3> kSourceNames = {"unknown", "self", "foreign"};
static_assert(kSourceNames.size() == static_cast<std::size_t>(PressureSource::kForeign) + 1);
constexpr std::array<std::string_view, 7> kSignNames = {
    "allocation_failed", "high_events", "allocator_use", "stall_and_available",
    "available",         "device_free", "stall"};
static_assert(kSignNames.size() == static_cast<std::size_t>(PressureSign::kStall) + 1);

std::optional<double> finite(std::optional<double> value) {
  if (value && !std::isfinite(*value)) return std::nullopt;
  return value;
}

// Percent of the pool that is free; absent: nothing is known of it.
std::optional<double> free_percent(const PoolSample& pool) {
  if (pool.total == 0) return std::nullopt;
  return 100.0 * static_cast<double>(pool.free) / static_cast<double>(pool.total);
}

// A pool runs out although we keep to our budget, which leaves others their part: it is theirs.
PressureSource cause(const PoolSample& pool) {
  if (!pool.own) return PressureSource::kUnknown;
  return *pool.own > pool.budget ? PressureSource::kSelf : PressureSource::kForeign;
}

PressureSource cause_of_stall(const PressureSample& now) {
  const auto own = finite(now.own_stall_some);
  if (!own) return PressureSource::kUnknown;
  return *own >= kStallPercent ? PressureSource::kSelf : PressureSource::kForeign;
}

using Evidence = std::vector<PressureEvidence>;

void add_own_signs(const PressureSample& now, const PressureSample* before, Evidence& evidence) {
  const auto rising = [&](PressureSign sign, std::uint64_t then, std::uint64_t count) {
    if (count <= then) return;
    evidence.push_back({.sign = sign,
                        .level = PressureLevel::kCritical,
                        .source = PressureSource::kSelf,
                        .value = static_cast<double>(count - then)});
  };
  if (before != nullptr) {
    rising(PressureSign::kAllocationFailed, before->allocation_failures, now.allocation_failures);
    if (now.high_events && before->high_events) {
      rising(PressureSign::kHighEvents, *before->high_events, *now.high_events);
    }
  }
  const auto use = finite(now.allocator_use);
  if (!use || *use < kUseWarning) return;
  const bool critical = *use >= kUseCritical;
  evidence.push_back({.sign = PressureSign::kAllocatorUse,
                      .level = critical ? PressureLevel::kCritical : PressureLevel::kWarning,
                      .source = PressureSource::kSelf,
                      .value = *use,
                      .threshold = critical ? kUseCritical : kUseWarning});
}

void add_host_signs(const PressureSample& now, Evidence& evidence) {
  const auto some = finite(now.stall_some);
  const auto full = finite(now.stall_full);
  const auto available = now.host ? free_percent(*now.host) : std::nullopt;
  if (full && *full >= kStallPercent && available && *available < kAvailableCritical) {
    evidence.push_back({.sign = PressureSign::kStallAndAvailable,
                        .level = PressureLevel::kCritical,
                        .source = cause(*now.host),
                        .value = *full,
                        .threshold = kStallPercent});
  }
  if (available && *available < kAvailableWarning) {
    evidence.push_back({.sign = PressureSign::kAvailable,
                        .source = cause(*now.host),
                        .value = *available,
                        .threshold = kAvailableWarning});
  }
  if (some && *some >= kStallPercent) {
    evidence.push_back({.sign = PressureSign::kStall,
                        .source = cause_of_stall(now),
                        .value = *some,
                        .threshold = kStallPercent});
  }
}

void add_device_signs(const PressureSample& now, Evidence& evidence) {
  for (const PoolSample& device : now.devices) {
    const auto free = free_percent(device);
    if (!free || *free >= kDeviceFreeWarning) continue;
    evidence.push_back({.sign = PressureSign::kDeviceFree,
                        .source = cause(device),
                        .value = *free,
                        .threshold = kDeviceFreeWarning,
                        .domain = device.id});
  }
}

}  // namespace

std::string_view pressure_level_name(PressureLevel level) {
  return kLevelNames.at(static_cast<std::size_t>(level));
}
std::string_view pressure_source_name(PressureSource source) {
  return kSourceNames.at(static_cast<std::size_t>(source));
}
std::string_view pressure_sign_name(PressureSign sign) {
  return kSignNames.at(static_cast<std::size_t>(sign));
}

Pressure pressure_of(const PressureSample& now, const PressureSample* before) {
  Pressure pressure;
  add_own_signs(now, before, pressure.evidence);
  add_host_signs(now, pressure.evidence);
  add_device_signs(now, pressure.evidence);
  std::ranges::stable_sort(pressure.evidence, [](const auto& a, const auto& b) {
    return std::pair(b.level, a.sign) < std::pair(a.level, b.sign);
  });
  if (pressure.evidence.empty()) return pressure;
  pressure.level = pressure.evidence.front().level;
  for (const PressureEvidence& sign : pressure.evidence) {
    if (sign.level != pressure.level || sign.source == PressureSource::kUnknown) continue;
    pressure.source = sign.source;
    break;
  }
  return pressure;
}

}  // namespace berth::core
