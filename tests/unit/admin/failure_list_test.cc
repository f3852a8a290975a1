#include "supervisor/admin/failure_list.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth::admin {
namespace {

core::FailureRecord record(const std::string& model, std::uint8_t number, bool stands) {
  core::FailureRecord made;
  made.model = model;
  made.id = Uuid::parse("01900000-0000-7000-8000-0000000000" + std::to_string(10 + number));
  if (!stands) made.lifted = core::Lift{};
  return made;
}

TEST(FailureList, L18_TheLimitIsBounded) {
  EXPECT_EQ(failure_limit(0), kUsualFailures);
  EXPECT_EQ(failure_limit(1), 1U);
  EXPECT_EQ(failure_limit(4'000'000'000U), kMostFailures);
}

TEST(FailureList, L18_WhatStandsComesFirstAndOnce) {
  const auto list = standing_first(
      {record("b", 3, true)}, {record("b", 3, true), record("b", 2, false), record("a", 1, false)});
  ASSERT_EQ(list.size(), 3U);
  EXPECT_FALSE(list[0].lifted);
  EXPECT_EQ(list[1].id, record("b", 2, false).id);
  EXPECT_EQ(list[2].model, "a");
}

TEST(FailureList, L23_WhatTheStoreStillCallsStandingDoesNotStand) {
  EXPECT_TRUE(standing_first({}, {record("a", 1, true)}).empty());
}

TEST(FailureList, OfOneModelOrOfAll) {
  const std::vector<core::FailureRecord> all{record("a", 1, true), record("b", 2, true)};
  EXPECT_EQ(failures_of(all, "").size(), 2U);
  ASSERT_EQ(failures_of(all, "b").size(), 1U);
  EXPECT_EQ(failures_of(all, "b").front().model, "b");
}

}  // namespace
}  // namespace berth::admin
