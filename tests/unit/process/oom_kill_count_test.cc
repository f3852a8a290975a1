#include "supervisor/process/oom_kill_count.h"

#include <gtest/gtest.h>

#include <csignal>

namespace berth::process {
namespace {

const core::ExitStatus kPlain = core::Exited{1};
const core::ExitStatus kAbort = core::Signalled{SIGABRT};
const core::ExitStatus kKill = core::Signalled{SIGKILL};

OomKillCount sampled(int samples, std::uint64_t count, OomKillCount counts = {}) {
  for (int i = 0; i < samples; ++i) counts.sample(count);
  return counts;
}

TEST(OomKillCount, L9_OfANewCgroupEachKillExplainsTheExit) {
  for (const core::ExitStatus& exit : {kPlain, kAbort, kKill}) {
    EXPECT_TRUE(OomKillCount().explains(exit, 1));
    EXPECT_FALSE(OomKillCount().explains(exit, 0));
  }
}

TEST(OomKillCount, L9_AnOldKillOfAHelperIsNotWhyItsWorkerEndsLater) {
  const OomKillCount counts = sampled(100, 1);
  for (const core::ExitStatus& exit : {kPlain, kAbort, kKill}) {
    EXPECT_FALSE(counts.explains(exit, 1));
    EXPECT_TRUE(counts.explains(exit, 2)) << "another one";
  }
}

TEST(OomKillCount, L9_ASampleBetweenTheKillAndTheExitHidesNothing) {
  EXPECT_TRUE(sampled(1, 1, sampled(100, 0)).explains(kPlain, 1));
  EXPECT_FALSE(sampled(2, 1, sampled(100, 0)).explains(kPlain, 1));
}

TEST(OomKillCount, L9_WhatTheKernelKillsMayTakeTwoMinutesToGo) {
  EXPECT_TRUE(sampled(12, 1, sampled(100, 0)).explains(kKill, 1));
  EXPECT_FALSE(sampled(13, 1, sampled(100, 0)).explains(kKill, 1));
}

}  // namespace
}  // namespace berth::process
