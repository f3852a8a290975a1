#include "supervisor/core/memory/measured_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::core {
namespace {

constexpr std::uint64_t kMiB = 1ULL << 20;
constexpr DomainIndex kGpu = 1;

Domains host_and_gpu() {
  Domains domains(2);
  domains[0].id = "host";
  domains[1].id = "GPU-1";
  return domains;
}

// 1000 MiB of the host and 2000 of a device.
Charge prediction() {
  Charge charge;
  charge.weights.bytes[0] = 600 * kMiB;
  charge.kv.bytes[0] = 200 * kMiB;
  charge.working.bytes[0] = 100 * kMiB;
  charge.overhead.bytes[0] = 100 * kMiB;
  charge.weights.bytes[kGpu] = 1000 * kMiB;
  charge.kv.bytes[kGpu] = 400 * kMiB;
  charge.working.bytes[kGpu] = 200 * kMiB;
  charge.overhead.bytes[kGpu] = 400 * kMiB;
  charge.error[0] = charge.error[kGpu] = 300 * kMiB;
  return charge;
}

MeasuredDomain report(std::string domain, std::uint64_t weights, std::uint64_t kv,
                      std::uint64_t working, std::uint64_t mapped = 0) {
  MeasuredDomain row;
  row.domain = std::move(domain);
  row.weights = weights * kMiB;
  row.kv = kv * kMiB;
  row.working = working * kMiB;
  row.mapped = mapped * kMiB;
  return row;
}

FailureMemory failure(std::string domain, std::optional<std::uint64_t> high_water = std::nullopt,
                      std::optional<std::uint64_t> refused = std::nullopt) {
  FailureMemory memory;
  memory.domain = std::move(domain);
  memory.high_water = high_water;
  memory.failing_allocation = refused;
  return memory;
}

MeasuredLoad ready_once() {
  MeasuredLoad measured;
  add_report(measured,
             std::vector{report("host", 610, 205, 90, 610), report("GPU-1", 990, 410, 250)});
  return measured;
}

TEST(MeasuredLoad, M5_WhatLibllamaReportedReplacesThePrediction) {
  const auto charge = with_measured(prediction(), ready_once(), host_and_gpu());
  EXPECT_EQ(charge.weights.bytes[0], 610 * kMiB);
  EXPECT_EQ(charge.kv.bytes[kGpu], 410 * kMiB);
  EXPECT_EQ(charge.working.bytes[kGpu], 250 * kMiB);
  EXPECT_EQ(charge.weights.basis, Basis::kMeasured);
  EXPECT_EQ(charge.kv.basis, Basis::kMeasured);
  EXPECT_EQ(charge.working.basis, Basis::kMeasured);
  // Nobody has seen the process.
  EXPECT_EQ(charge.overhead.basis, Basis::kEstimated);
  EXPECT_EQ(charge.overhead.bytes, prediction().overhead.bytes);
  EXPECT_LT(charge.error[0], prediction().error[0]);
}

TEST(MeasuredLoad, M5_ADevicesOverheadIsWhatItsDriverSaysBeside) {
  auto measured = ready_once();
  add_process(measured, "GPU-1", 1700 * kMiB);
  add_process(measured, "GPU-1", 1800 * kMiB);
  add_process(measured, "GPU-1", 900 * kMiB);
  const auto charge = with_measured(prediction(), measured, host_and_gpu());
  EXPECT_EQ(charge.overhead.bytes[kGpu], (1800 - 990 - 410 - 250) * kMiB);
}

TEST(MeasuredLoad, M5_TheHostsOverheadOnlyGrowsByMeasurement) {
  auto measured = ready_once();
  // Buffers that are not touched yet are not resident: less than was reported is no evidence.
  add_process(measured, "host", 250 * kMiB);
  EXPECT_EQ(with_measured(prediction(), measured, host_and_gpu()).overhead.bytes[0], 100 * kMiB);
  // The mapped weights are no memory of the process.
  add_process(measured, "host", 495 * kMiB);
  const auto charge = with_measured(prediction(), measured, host_and_gpu());
  EXPECT_EQ(charge.overhead.bytes[0], 200 * kMiB);
  add_process(measured, "GPU-1", 1700 * kMiB);
  EXPECT_EQ(with_measured(prediction(), measured, host_and_gpu()).overhead.basis, Basis::kMeasured);
}

TEST(MeasuredLoad, M4_TheMaximumOfAllLoadsIsUsed) {
  auto measured = ready_once();
  add_report(measured, std::vector{report("host", 610, 205, 130, 610)});
  add_report(measured, std::vector{report("host", 610, 205, 80, 610)});
  EXPECT_EQ(measured.loads, 3U);
  EXPECT_EQ(with_measured(prediction(), measured, host_and_gpu()).working.bytes[0], 130 * kMiB);
}

TEST(MeasuredLoad, M5_ADomainThatWasNotMeasuredKeepsItsPrediction) {
  MeasuredLoad measured;
  add_report(measured, std::vector{report("host", 610, 205, 90)});
  const auto charge = with_measured(prediction(), measured, host_and_gpu());
  EXPECT_EQ(charge.weights.bytes[kGpu], prediction().weights.bytes[kGpu]);
  EXPECT_EQ(charge.error[kGpu], prediction().error[kGpu]);
  EXPECT_EQ(charge.weights.basis, Basis::kEstimated);
}

TEST(MeasuredLoad, M4_WhereNothingWasReportedTheProcessIsWhatIsMeasured) {
  MeasuredLoad command;
  add_process(command, "host", 300 * kMiB);
  EXPECT_EQ(with_measured({}, command, host_and_gpu()), Charge());  // it never became ready
  add_report(command, {});
  const Charge charge = with_measured({}, command, host_and_gpu());
  EXPECT_EQ(charge.total(), DomainBytes::in(0, 300 * kMiB));
  EXPECT_EQ(charge.overhead.basis, Basis::kMeasured);
  EXPECT_EQ(charge.error[0], 16 * kMiB);
  // What is predicted, or declared, is more.
  EXPECT_EQ(with_measured(prediction(), command, host_and_gpu()).total(), prediction().total());
  EXPECT_EQ(with_measured(prediction(), command, host_and_gpu()).error, prediction().error);
}

TEST(MeasuredLoad, L21_AFailedLoadSaysWhatIsNeededAtLeast) {
  MeasuredLoad measured;
  add_failure(measured, failure("GPU-1", 1500 * kMiB, 900 * kMiB));
  add_failure(measured, failure("GPU-1", 100 * kMiB));
  add_failure(measured, failure("GPU-1"));
  add_failure(measured, failure("", 9000 * kMiB));
  const auto charge = with_measured(prediction(), measured, host_and_gpu());
  EXPECT_EQ(charge.total()[kGpu], 2400 * kMiB);
  EXPECT_EQ(charge.total()[0], prediction().total()[0]);
  EXPECT_EQ(charge.overhead.basis, Basis::kEstimated);
  // A bound below the prediction changes nothing.
  MeasuredLoad low;
  add_failure(low, failure("host", 10 * kMiB));
  EXPECT_EQ(with_measured(prediction(), low, host_and_gpu()), prediction());
}

TEST(MeasuredLoad, L21_ASuccessEndsTheBound) {
  MeasuredLoad measured;
  add_failure(measured, failure("host", 9000 * kMiB));
  add_report(measured, std::vector{report("host", 610, 205, 90)});
  EXPECT_LT(with_measured(prediction(), measured, host_and_gpu()).total()[0], 2000 * kMiB);
}

TEST(MeasuredLoad, M5_TheKeyIsEverythingButTheBudget) {
  Provenance provenance;
  provenance.window = 4096;
  provenance.budget = std::map<std::string, std::uint64_t>{{"host", 1}};
  const auto domains = host_and_gpu();
  const auto key = measurement_key(provenance, {}, domains);
  provenance.budget->at("host") = 2;
  EXPECT_EQ(measurement_key(provenance, {}, domains), key);
  EXPECT_NE(measurement_key(provenance, {{{kGpu, 3}}}, domains), key);
  EXPECT_THAT(measurement_key(provenance, {{{kGpu, 3}}}, domains), testing::EndsWith(" 3@GPU-1"));
  provenance.window = 8192;
  EXPECT_NE(measurement_key(provenance, {}, domains), key);
}

TEST(MeasuredLoad, M5_PredictedToActual) {
  const auto row = report("GPU-1", 900, 0, 0);
  EXPECT_DOUBLE_EQ(*predicted_to_actual(2000 * kMiB, row, 100 * kMiB, false), 2.0);
  EXPECT_FALSE(predicted_to_actual(2000 * kMiB, report("GPU-1", 0, 0, 0), 0, false).has_value());
}

}  // namespace
}  // namespace berth::core
