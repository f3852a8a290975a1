#include "supervisor/core/memory/measured_doubt.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

namespace berth::core {
namespace {

constexpr std::uint64_t kGiB = 1ULL << 30U;

constexpr std::uint64_t kMainMemory = 32 * kGiB;

Domains domains() {
  return {{.id = "host", .device = "", .total = 24 * kGiB},
          {.id = "GPU-a", .device = "CUDA0", .total = 16 * kGiB}};
}

MeasuredDomain row(const std::string& domain, std::uint64_t weights, std::uint64_t kv = 0,
                   std::uint64_t working = 0) {
  MeasuredDomain made;
  made.domain = domain;
  made.weights = weights;
  made.kv = kv;
  made.working = working;
  return made;
}

MeasuredDomain seen(const std::string& domain, std::uint64_t process) {
  MeasuredDomain made = row(domain, 0);
  made.process = process;
  return made;
}

MeasuredDomain needed(const std::string& domain, std::uint64_t at_least) {
  MeasuredDomain made = row(domain, 0);
  made.at_least = at_least;
  return made;
}

std::optional<std::string> doubt(const MeasuredDomain& row) {
  return doubt_of({.loads = 1, .domains = {row}}, domains(), kMainMemory);
}

TEST(MeasuredDoubt, M5_WhatThereIsMayBeTaken) {
  EXPECT_FALSE(doubt(row("GPU-a", 12 * kGiB, 4 * kGiB)));
  EXPECT_FALSE(doubt(seen("GPU-a", 16 * kGiB)));
  EXPECT_FALSE(doubt(seen("host", 32 * kGiB))) << "a device may have the rest";
  EXPECT_FALSE(doubt(needed("GPU-a", 30 * kGiB))) << "a part of it was refused";
}

TEST(MeasuredDoubt, M5_MoreThanThereIsCannotBe) {
  EXPECT_TRUE(doubt(row("GPU-a", 12 * kGiB, 4 * kGiB, 1)));
  EXPECT_TRUE(doubt(row("GPU-a", UINT64_MAX, UINT64_MAX)));
  EXPECT_TRUE(doubt(seen("GPU-a", 16 * kGiB + 1)));
  EXPECT_TRUE(doubt(row("host", 33 * kGiB)));
  EXPECT_TRUE(doubt(needed("GPU-a", 33 * kGiB)));
}

TEST(MeasuredDoubt, M5_ADomainThatIsNotKnownIsNotJudged) {
  EXPECT_FALSE(doubt(row("GPU-b", UINT64_MAX)));
  EXPECT_FALSE(doubt_of({.loads = 1, .domains = {row("host", UINT64_MAX)}}, {}, kMainMemory));
}

}  // namespace
}  // namespace berth::core
