#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"

// How short of memory the machine is (S18): from samples, without a guess.
namespace berth::core {

enum class PressureLevel : std::uint8_t { kNormal, kWarning, kCritical };
// "warning"
std::string_view pressure_level_name(PressureLevel level);

// Who causes it, as far as the numbers prove it.
enum class PressureSource : std::uint8_t { kUnknown, kSelf, kForeign };
std::string_view pressure_source_name(PressureSource source);

enum class PressureSign : std::uint8_t {
  kAllocationFailed,   // one of ours was refused memory
  kHighEvents,         // our control group went over its high mark
  kAllocatorUse,       // our use beside our limit
  kStallAndAvailable,  // the machine stands still for memory, and next to none is left
  kAvailable,          // little of the machine's memory is left
  kDeviceFree,         // or of a device's
  kStall,              // something in the machine waits for memory
};
// "device_free"
std::string_view pressure_sign_name(PressureSign sign);

// A pool as it was sampled. Bytes; `own` is what our processes really use, absent: not known.
struct PoolSample {
  std::string id{};  // of the domain
  std::uint64_t total = 0;
  std::uint64_t free = 0;  // of the host: MemAvailable
  std::optional<std::uint64_t> own{};
  std::uint64_t budget = 0;

  bool operator==(const PoolSample&) const = default;
};

// What was seen at one moment. What a kernel or a driver does not tell is absent, and proves
// nothing.
struct PressureSample {
  std::optional<double> stall_some{};      // PSI some avg10 of the machine, percent
  std::optional<double> stall_full{};      // PSI full avg10
  std::optional<double> own_stall_some{};  // of our control group
  std::optional<PoolSample> host{};
  std::vector<PoolSample> devices{};
  std::optional<std::uint64_t> high_events{};  // memory.events high, a counter
  std::uint64_t allocation_failures = 0;       // that workers reported, a counter
  std::optional<double> allocator_use{};       // used / limit, the largest over domains
};

// One sign that is given, with its numbers: percent, or a ratio for kAllocatorUse, or a count.
struct PressureEvidence {
  PressureSign sign = PressureSign::kStall;
  PressureLevel level = PressureLevel::kWarning;
  PressureSource source = PressureSource::kUnknown;
  double value = 0;
  double threshold = 0;
  std::string domain{};  // of kDeviceFree

  bool operator==(const PressureEvidence&) const = default;
};

struct Pressure {
  PressureLevel level = PressureLevel::kNormal;
  // Of the first piece of evidence of this level whose cause is known.
  PressureSource source = PressureSource::kUnknown;
  std::vector<PressureEvidence> evidence{};  // the gravest first, then in the order of the signs

  bool operator==(const Pressure&) const = default;
};

// The level that `now` shows. Counters are compared with `before`, the sample that preceded it;
// without one they prove nothing. Numbers that are not finite count as absent.
Pressure pressure_of(const PressureSample& now, const PressureSample* before);

// How often to sample: every second where the kernel has PSI, else every ten.
constexpr Duration pressure_interval(bool has_stall_information) {
  return has_stall_information ? std::chrono::seconds(1) : std::chrono::seconds(10);
}

}  // namespace berth::core
