#include "supervisor/core/memory/pressure.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>

namespace berth::core {
namespace {

// 1000 bytes, of which `free` are; our own use is within its budget of 600.
PoolSample host_with(std::uint64_t free) {
  return {.id = "host", .total = 1000, .free = free, .own = 100, .budget = 600};
}

PressureSample quiet() {
  PressureSample sample;
  sample.stall_some = 0;
  sample.stall_full = 0;
  sample.host = host_with(500);
  sample.high_events = 5;
  sample.allocator_use = 0.5;
  return sample;
}

PressureLevel level(const PressureSample& now, const PressureSample& before = quiet()) {
  return pressure_of(now, &before).level;
}

TEST(Pressure, S18_NothingSeenIsNormal) {
  EXPECT_EQ(pressure_of({}, nullptr), Pressure());
  EXPECT_EQ(level(quiet()), PressureLevel::kNormal);
}

TEST(Pressure, S18_StallOfSomeIsAWarning) {
  PressureSample now = quiet();
  now.stall_some = 9.99;
  EXPECT_EQ(level(now), PressureLevel::kNormal);
  now.stall_some = 10;
  EXPECT_EQ(level(now), PressureLevel::kWarning);
}

TEST(Pressure, S18_LittleAvailableIsAWarning) {
  PressureSample now = quiet();
  now.host = host_with(80);
  EXPECT_EQ(level(now), PressureLevel::kNormal);
  now.host = host_with(79);
  EXPECT_EQ(level(now), PressureLevel::kWarning);
  now.host = host_with(1);
  EXPECT_EQ(level(now), PressureLevel::kWarning) << "nothing stands still for it";
}

TEST(Pressure, S18_ADeviceWithLittleFreeIsAWarning) {
  PressureSample now = quiet();
  now.devices = {{.id = "gpu0", .total = 1000, .free = 30, .budget = 900},
                 {.id = "gpu1", .total = 1000, .free = 29, .own = 950, .budget = 900}};
  const Pressure pressure = pressure_of(now, nullptr);
  ASSERT_EQ(pressure.evidence.size(), 1U);
  EXPECT_EQ(pressure.level, PressureLevel::kWarning);
  EXPECT_EQ(pressure.evidence[0].sign, PressureSign::kDeviceFree);
  EXPECT_EQ(pressure.evidence[0].domain, "gpu1");
  EXPECT_EQ(pressure.source, PressureSource::kSelf);
}

TEST(Pressure, S18_AllocatorUseWarnsAt97PercentAndIsCriticalAt102) {
  PressureSample now = quiet();
  now.allocator_use = 0.969;
  EXPECT_EQ(level(now), PressureLevel::kNormal);
  now.allocator_use = 0.97;
  EXPECT_EQ(level(now), PressureLevel::kWarning);
  now.allocator_use = 1.02;
  EXPECT_EQ(level(now), PressureLevel::kCritical);
  EXPECT_EQ(pressure_of(now, nullptr).source, PressureSource::kSelf);
}

TEST(Pressure, S18_FullStallIsCriticalOnlyWithNextToNothingAvailable) {
  PressureSample now = quiet();
  now.stall_some = 60;
  now.stall_full = 50;
  EXPECT_EQ(level(now), PressureLevel::kWarning) << "others stand still; there is memory";
  now.host = host_with(40);
  EXPECT_EQ(level(now), PressureLevel::kWarning);
  now.host = host_with(39);
  EXPECT_EQ(level(now), PressureLevel::kCritical);
  now.stall_full = 9;
  EXPECT_EQ(level(now), PressureLevel::kWarning);
  now.stall_full = 50;
  now.host.reset();
  EXPECT_EQ(level(now), PressureLevel::kWarning) << "what is not known proves nothing";
}

TEST(Pressure, S18_OwnHighEventsThatRiseAreCritical) {
  PressureSample now = quiet();
  now.high_events = 6;
  EXPECT_EQ(level(now), PressureLevel::kCritical);
  EXPECT_EQ(pressure_of(now, nullptr).level, PressureLevel::kNormal) << "not known to rise";
  now.high_events = 4;
  EXPECT_EQ(level(now), PressureLevel::kNormal) << "another control group, counted anew";
  PressureSample before = quiet();
  before.high_events.reset();
  EXPECT_EQ(level(now, before), PressureLevel::kNormal);
}

TEST(Pressure, S18_AnAllocationFailureIsCriticalAtOnceAndPassesWithTheNextSample) {
  PressureSample now = quiet();
  now.allocation_failures = 1;
  const PressureSample before = quiet();
  const Pressure pressure = pressure_of(now, &before);
  EXPECT_EQ(pressure.level, PressureLevel::kCritical);
  EXPECT_EQ(pressure.source, PressureSource::kSelf);
  EXPECT_EQ(level(now, now), PressureLevel::kNormal);
}

TEST(Pressure, S18_TheSourceIsProvenOrUnknown) {
  PressureSample now = quiet();
  now.host = host_with(50);
  EXPECT_EQ(pressure_of(now, nullptr).source, PressureSource::kForeign);
  now.host->own = 700;
  EXPECT_EQ(pressure_of(now, nullptr).source, PressureSource::kSelf);
  now.host->own.reset();
  EXPECT_EQ(pressure_of(now, nullptr).source, PressureSource::kUnknown);

  now = quiet();
  now.stall_some = 20;
  EXPECT_EQ(pressure_of(now, nullptr).source, PressureSource::kUnknown);
  now.own_stall_some = 1;
  EXPECT_EQ(pressure_of(now, nullptr).source, PressureSource::kForeign);
  now.own_stall_some = 15;
  EXPECT_EQ(pressure_of(now, nullptr).source, PressureSource::kSelf);
}

TEST(Pressure, S18_TheGravestEvidenceComesFirst) {
  PressureSample now = quiet();
  now.allocator_use = 0.98;
  now.stall_some = 60;
  now.stall_full = 50;
  now.host = host_with(10);
  const Pressure pressure = pressure_of(now, nullptr);
  ASSERT_EQ(pressure.evidence.size(), 4U);
  EXPECT_EQ(pressure.evidence[0].sign, PressureSign::kStallAndAvailable);
  EXPECT_EQ(pressure.evidence[1].sign, PressureSign::kAllocatorUse);
  EXPECT_EQ(pressure.source, PressureSource::kForeign);
}

TEST(Pressure, S18_SampledEverySecondWhereTheKernelTellsOfStalls) {
  EXPECT_EQ(pressure_interval(true), std::chrono::seconds(1));
  EXPECT_EQ(pressure_interval(false), std::chrono::seconds(10));
}

TEST(Pressure, S18_NumbersThatAreNoneProveNothing) {
  PressureSample now = quiet();
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    now.stall_some = now.stall_full = now.allocator_use = value;
    EXPECT_EQ(level(now), PressureLevel::kNormal);
  }
  now = quiet();
  now.host = PoolSample{};
  now.devices = {PoolSample{}};
  EXPECT_EQ(level(now), PressureLevel::kNormal);
}

// Pressure of others without low MemAvailable is at most a warning.
RC_GTEST_PROP(PressureProperty, S18_CriticalTakesOurOwnSignOrNextToNothingAvailable, ()) {
  const auto percent = [] { return *rc::gen::inRange(0, 101); };
  PressureSample now = quiet();
  now.stall_some = percent();
  now.stall_full = percent();
  now.own_stall_some = percent();
  now.host = host_with(static_cast<std::uint64_t>(percent()));
  now.allocator_use = percent() / 100.0;
  const PressureSample before = quiet();
  const Pressure pressure = pressure_of(now, &before);
  if (pressure.level != PressureLevel::kCritical) return;
  RC_ASSERT(*now.stall_full >= 10);
  RC_ASSERT(now.host->free < 40U);
}

}  // namespace
}  // namespace berth::core
