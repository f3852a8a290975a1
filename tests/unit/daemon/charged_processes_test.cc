#include "supervisor/charged_processes.h"

#include <gtest/gtest.h>

#include <string>

#include "supervisor/core/instance_state.h"

namespace berth {
namespace {

using core::InstanceState;

constexpr WallTime kNow{std::chrono::hours(1000)};

bool moves(InstanceState state, WallTime::duration since = std::chrono::seconds(1)) {
  residency::InstanceSnapshot one;
  one.pid = 7;
  one.state = std::string(core::info(state).name);
  one.state_since = kNow - since;
  one.charge = core::DomainBytes::in(1, 5);
  const auto all = charged_processes({one}, kNow);
  EXPECT_EQ(all.size(), 1U);
  EXPECT_EQ(all.front().pid, 7);
  EXPECT_EQ(all.front().charge, one.charge);
  return all.front().moving;
}

TEST(ChargedProcesses, M3_WhoComesOrGoesHoldsAPartOfItsCharge) {
  EXPECT_TRUE(moves(InstanceState::kStarting));
  EXPECT_TRUE(moves(InstanceState::kLoading));
  EXPECT_TRUE(moves(InstanceState::kStopping));
  EXPECT_FALSE(moves(InstanceState::kReady));
  EXPECT_FALSE(moves(InstanceState::kBusy));
  EXPECT_FALSE(moves(InstanceState::kClosing));
  EXPECT_FALSE(moves(InstanceState::kDraining));
}

TEST(ChargedProcesses, M3_WhatIsStuckOrMovesForLongHoldsAllOfIt) {
  EXPECT_FALSE(moves(InstanceState::kStuck));
  EXPECT_TRUE(moves(InstanceState::kLoading, kLongestMove - std::chrono::milliseconds(1)));
  EXPECT_FALSE(moves(InstanceState::kLoading, kLongestMove));
}

}  // namespace
}  // namespace berth
