#include "supervisor/core/key_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace berth::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

Caller caller(const std::string& key) {
  return {.role = Role::kClient, .entitled = true, .tenant = "key:" + key, .key = key};
}

SteadyTime at(Duration since_start) {
  return SteadyTime(std::chrono::hours(1) + since_start);
}

TEST(KeyLimits, AreNoneWithoutThem) {
  KeyLimits limits;
  std::vector<KeyPermit> held;
  for (int i = 0; i < 1000; ++i) {
    Result<KeyPermit> permit = limits.admit(caller("a"), at(seconds(0)));
    ASSERT_TRUE(permit);
    held.push_back(*std::move(permit));
  }
}

TEST(KeyLimits, AreOfKeysAlone) {
  KeyLimits limits;
  limits.set({1, 1});
  std::vector<KeyPermit> held;
  for (int i = 0; i < 10; ++i) {
    Result<KeyPermit> permit = limits.admit(Caller(), at(seconds(0)));
    ASSERT_TRUE(permit);
    held.push_back(*std::move(permit));
  }
  EXPECT_TRUE(limits.admit(caller("a"), at(seconds(0))));
  EXPECT_TRUE(limits.admit(caller("b"), at(seconds(0)))) << "each key has its own";
}

TEST(KeyLimits, BucketFillsByTheMinute) {
  KeyLimits limits;
  limits.set({6, 0});
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(limits.admit(caller("a"), at(seconds(0)))) << i;
  const Result<KeyPermit> refused = limits.admit(caller("a"), at(seconds(4)));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, Reason::kRateLimited);
  EXPECT_DOUBLE_EQ(refused.error().extras->retry_after_seconds.value(), 6);
  EXPECT_THAT(refused.error().message, HasSubstr("6 requests"));
  EXPECT_FALSE(limits.admit(caller("a"), at(milliseconds(9'999))));
  EXPECT_TRUE(limits.admit(caller("a"), at(seconds(10)))) << "one is due every 10 s";
  EXPECT_FALSE(limits.admit(caller("a"), at(seconds(10))));
}

TEST(KeyLimits, RefusalCostsNothing) {
  KeyLimits limits;
  limits.set({1, 0});
  EXPECT_TRUE(limits.admit(caller("a"), at(seconds(0))));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(limits.admit(caller("a"), at(seconds(30))));
  EXPECT_TRUE(limits.admit(caller("a"), at(seconds(60))));
}

TEST(KeyLimits, ConcurrencyIsGivenBack) {
  KeyLimits limits;
  limits.set({0, 2});
  std::optional<KeyPermit> first = *limits.admit(caller("a"), at(seconds(0)));
  KeyPermit second = *limits.admit(caller("a"), at(seconds(0)));
  const Result<KeyPermit> refused = limits.admit(caller("a"), at(seconds(0)));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, Reason::kRateLimited);
  EXPECT_GT(refused.error().extras->retry_after_seconds.value(), 0);
  KeyPermit moved = std::move(second);
  EXPECT_FALSE(limits.admit(caller("a"), at(seconds(0)))) << "a move gives nothing back";
  first.reset();
  EXPECT_TRUE(limits.admit(caller("a"), at(seconds(0))));
  moved = {};
  EXPECT_TRUE(limits.admit(caller("a"), at(seconds(0))));
}

TEST(KeyLimits, BusyKeyDoesNotSpendItsMinute) {
  KeyLimits limits;
  limits.set({2, 1});
  KeyPermit first = *limits.admit(caller("a"), at(seconds(0)));
  EXPECT_FALSE(limits.admit(caller("a"), at(seconds(0))));
  first = {};
  EXPECT_TRUE(limits.admit(caller("a"), at(seconds(0))));
}

TEST(KeyLimits, ChangeInPlace) {
  KeyLimits limits;
  limits.set({60, 0});
  const KeyPermit held = *limits.admit(caller("a"), at(seconds(0)));
  for (int i = 1; i < 60; ++i) ASSERT_TRUE(limits.admit(caller("a"), at(seconds(0))));
  limits.set({1, 1});
  EXPECT_FALSE(limits.admit(caller("a"), at(seconds(1)))) << "what runs counts";
  limits.set({1, 2});
  EXPECT_FALSE(limits.admit(caller("a"), at(seconds(59)))) << "what was taken counts";
  EXPECT_TRUE(limits.admit(caller("a"), at(seconds(60))));
  limits.set({0, 0});
  EXPECT_TRUE(limits.admit(caller("a"), at(seconds(60))));
}

TEST(KeyLimits, PermitMayOutliveThem) {
  std::optional<KeyPermit> permit;
  {
    KeyLimits limits;
    permit = *limits.admit(caller("a"), at(seconds(0)));
  }
  permit.reset();
}

TEST(KeyLimits, ForgettingKeysGivesNobodyMore) {
  KeyLimits limits;
  limits.set({1, 1});
  const KeyPermit held = *limits.admit(caller("held"), at(seconds(0)));
  EXPECT_TRUE(limits.admit(caller("used"), at(seconds(0))));
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(limits.admit(caller("k" + std::to_string(i)), at(seconds(1))));
  }
  EXPECT_FALSE(limits.admit(caller("used"), at(seconds(1))));
  EXPECT_FALSE(limits.admit(caller("held"), at(seconds(100))));
}

// However requests come, what is admitted in any span is the bucket and what flowed into it, and a
// client that waits as long as it was told is admitted.
RC_GTEST_PROP(KeyLimitsProperty, AdmitTheirRateAndKeepTheirWord, ()) {
  const auto rate = *rc::gen::inRange<std::uint32_t>(1, 200);
  KeyLimits limits;
  limits.set({rate, 0});
  Duration now{};
  std::vector<Duration> admitted;
  const int steps = *rc::gen::inRange(1, 300);
  for (int i = 0; i < steps; ++i) {
    now += milliseconds(*rc::gen::inRange(0, 3000));
    const Result<KeyPermit> permit = limits.admit(caller("a"), at(now));
    if (permit) {
      admitted.push_back(now);
      continue;
    }
    const double wait = permit.error().extras->retry_after_seconds.value();
    RC_ASSERT(wait > 0 && wait <= 60);
    now += std::chrono::duration_cast<Duration>(std::chrono::duration<double>(wait)) +
           std::chrono::microseconds(1);
    RC_ASSERT(limits.admit(caller("a"), at(now)).has_value());
    admitted.push_back(now);
  }
  for (std::size_t from = 0; from < admitted.size(); ++from) {
    const double minutes =
        std::chrono::duration<double>(admitted.back() - admitted[from]).count() / 60;
    RC_ASSERT(static_cast<double>(admitted.size() - from) <= rate + minutes * rate + 0.01);
  }
}

}  // namespace
}  // namespace berth::core
