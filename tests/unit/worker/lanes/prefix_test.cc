// Prefixes that are taken over from lanes, busy or idle (T85, T81), under simulated time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/worker/lanes/simulation.h"

namespace berth::worker {
namespace {

FakeSettings machine(std::uint32_t sequences, bool shares) {
  FakeSettings settings;
  settings.sequences = sequences;
  settings.window = 1024;
  settings.cells = 4096;
  settings.batch = 128;
  settings.shares_cells = shares;
  return settings;
}

// Answers a prompt, in at most so many tokens; returns how many of its tokens were in the context.
std::uint32_t cached(Simulation& simulation, const std::string& prompt,
                     const std::string& scope = {}, std::uint32_t max_tokens = 4) {
  auto job = simulation.job(prompt);
  job->max_tokens = max_tokens;
  job->cache_scope = scope;
  const auto sink = simulation.submit(std::move(job));
  simulation.run_until([&] { return sink->end.has_value(); });
  EXPECT_NE(sink->result(), nullptr);
  if (sink->result() == nullptr) return 0;
  EXPECT_EQ(sink->result()->cached_tokens, simulation.really_cached(*sink));
  EXPECT_EQ(sink->text, answer_to(prompt).substr(0, max_tokens));
  return sink->result()->cached_tokens;
}

const std::string kSystem(200, 's');

TEST(Prefixes, T85_AlternatingPromptsKeepALaneEach) {
  for (const bool shares : {false, true}) {
    Simulation simulation(machine(2, shares));
    const auto one = std::string(100, 'a');
    const auto two = std::string(100, 'b');
    cached(simulation, one + "1");
    cached(simulation, two + "1");
    EXPECT_EQ(cached(simulation, one + "2"), 100U);
    EXPECT_EQ(cached(simulation, two + "2"), 100U);
    EXPECT_EQ(cached(simulation, one + "3"), 100U);
  }
}

TEST(Prefixes, AFewTokensInCommonDoNotCostALongConversation) {
  Simulation simulation(machine(2, false));
  const auto conversation = "B" + std::string(300, 'a');
  cached(simulation, conversation);
  EXPECT_EQ(cached(simulation, "B something else"), 0U);
  EXPECT_EQ(cached(simulation, conversation + " and so on"), 301U);
}

TEST(Prefixes, ABusyLaneSharesItsPrefix) {
  Simulation simulation(machine(3, true));
  simulation.engine.never_ends = true;
  auto long_job = simulation.job(kSystem + "tell me");
  long_job->max_tokens = 500;
  const auto busy = simulation.submit(std::move(long_job));
  simulation.run_until([&] { return busy->text.size() > 10; });
  auto job = simulation.job(kSystem + "something else");
  job->max_tokens = 4;
  const auto sink = simulation.submit(std::move(job));
  simulation.run_until([&] { return sink->end.has_value(); });
  ASSERT_NE(sink->result(), nullptr);
  EXPECT_EQ(sink->result()->cached_tokens, kSystem.size());
  EXPECT_EQ(simulation.really_cached(*sink), kSystem.size());
  EXPECT_FALSE(busy->end.has_value());
}

TEST(Prefixes, WhatIsBeingReadIsReadOnce) {
  Simulation simulation(machine(8, true));
  std::vector<std::shared_ptr<Simulation::Sink>> sinks;
  for (int i = 0; i < 8; ++i) {
    auto job = simulation.job(kSystem + std::to_string(i));
    job->max_tokens = 3;
    sinks.push_back(simulation.submit(std::move(job)));
  }
  simulation.run();
  std::size_t in_common = 0;
  for (const auto& sink : sinks) {
    ASSERT_NE(sink->result(), nullptr);
    EXPECT_EQ(sink->result()->cached_tokens, simulation.really_cached(*sink));
    in_common += sink->result()->cached_tokens;
  }
  EXPECT_EQ(in_common, 7 * kSystem.size());
}

TEST(Prefixes, WhoWaitsForAPrefixGoesOnWhenItsReaderIsGone) {
  Simulation simulation(machine(2, true));
  const auto first = simulation.submit(std::string(600, 's') + "1");
  auto job = simulation.job(std::string(600, 's') + "2");
  job->max_tokens = 3;
  const auto second = simulation.submit(std::move(job));
  simulation.run(2);
  first->wants_cancel = true;
  simulation.run();
  EXPECT_TRUE(first->was_cancelled());
  ASSERT_NE(second->result(), nullptr);
  EXPECT_EQ(second->result()->cached_tokens, 256U) << "what was read until then";
  EXPECT_EQ(simulation.really_cached(*second), 256U);
}

TEST(Prefixes, S8_T81_NoScopeUsesAnothersState) {
  for (const bool shares : {false, true}) {
    Simulation simulation(machine(4, shares));
    simulation.engine.never_ends = true;
    const auto canary = kSystem + "the canary sings at dawn";
    // Idle state of one scope, and busy state of another.
    auto busy_job = simulation.job(canary);
    busy_job->max_tokens = 200;
    busy_job->cache_scope = "busy";
    const auto busy = simulation.submit(std::move(busy_job));
    simulation.run_until([&] { return busy->text.size() > 3; });
    // The same text by everybody else, one after the other.
    for (const std::string scope : {"idle", "", "other", "Busy", "idle "}) {
      auto job = simulation.job(canary);
      job->max_tokens = 1;
      job->cache_scope = scope;
      const auto sink = simulation.submit(std::move(job));
      simulation.run_until([&] { return sink->end.has_value(); });
      EXPECT_EQ(sink->result()->cached_tokens, 0U) << scope;
      EXPECT_EQ(simulation.really_cached(*sink), 0U) << scope;
    }
    EXPECT_EQ(simulation.engine.copied_tokens, 0U);
  }
}

TEST(Prefixes, S8_NobodyWaitsForWhatAnotherScopeReads) {
  Simulation simulation(machine(2, true));
  std::vector<std::shared_ptr<Simulation::Sink>> sinks;
  for (const std::string scope : {"one", "two"}) {
    auto job = simulation.job(kSystem + "?");
    job->max_tokens = 1;
    job->cache_scope = scope;
    sinks.push_back(simulation.submit(std::move(job)));
  }
  simulation.run();
  for (const auto& sink : sinks) EXPECT_EQ(sink->result()->cached_tokens, 0U);
}

TEST(Prefixes, S8_AScopeFindsItsOwnAgain) {
  Simulation simulation(machine(2, true));
  const auto prompt = std::string(100, 'x');
  EXPECT_EQ(cached(simulation, prompt, "one"), 0U);
  EXPECT_EQ(cached(simulation, prompt, "two"), 0U);
  EXPECT_EQ(cached(simulation, prompt, "one"), 99U);
  EXPECT_EQ(cached(simulation, prompt, "two"), 99U);
}

TEST(Prefixes, M4_WhatAWaitingJobCanUseIsGivenUpLast) {
  auto settings = machine(3, false);
  settings.window = 400;
  settings.cells = 600;
  settings.batch = 256;
  settings.endless = true;
  Simulation simulation(settings);
  const auto hold = [&](char letter) {
    auto job = simulation.job(std::string(150, letter));
    job->max_tokens = 1;
    const auto sink = simulation.submit(std::move(job));
    simulation.run_until([&] { return sink->end.has_value(); });
  };
  hold('w');  // what the waiting job wants, in the lane that is idle the longest
  hold('o');
  // One job takes most of the pool; the next has to wait for cells.
  auto big = simulation.job(std::string(200, 'b'));
  big->max_tokens = 200;
  const auto big_sink = simulation.submit(std::move(big));
  auto waits = simulation.job(std::string(150, 'w') + "and more");
  waits->max_tokens = 100;
  const auto sink = simulation.submit(std::move(waits));
  simulation.run();
  ASSERT_NE(sink->result(), nullptr);
  EXPECT_EQ(sink->result()->cached_tokens, 150U);
  EXPECT_NE(big_sink->result(), nullptr);
}

TEST(Prefixes, AParkedLaneWhoseReaderIsSlowSaysNothingWhenItGoesOn) {
  auto settings = machine(2, false);
  settings.window = 64;
  settings.cells = 64;
  settings.endless = true;
  Simulation simulation(settings);
  const auto old_sink = simulation.submit(std::string(10, 'a'));
  const auto young_sink = simulation.submit(std::string(10, 'b'));
  young_sink->room = 20;
  simulation.run();
  EXPECT_NE(old_sink->result(), nullptr);
  EXPECT_EQ(young_sink->text.size(), 20U);
  young_sink->room = SIZE_MAX;
  simulation.run();
  EXPECT_EQ(young_sink->text.size(), 54U);
}

TEST(Prefixes, AParkedLaneTellsTheTruth) {
  auto settings = machine(2, false);
  settings.window = 64;
  settings.cells = 64;
  settings.endless = true;
  Simulation simulation(settings);
  const auto old_sink = simulation.submit(std::string(10, 'a'));
  const auto young_sink = simulation.submit(std::string(10, 'b'));
  simulation.run();
  for (const auto& sink : {old_sink, young_sink}) {
    ASSERT_NE(sink->result(), nullptr);
    EXPECT_EQ(sink->result()->cached_tokens, simulation.really_cached(*sink));
    EXPECT_EQ(sink->text.size(), 54U);
  }
}

// Who says how much it needs has it until its end, however young; the oldest is never parked.
TEST(Parking, M4_TheYoungestOfThoseThatGrowIsParked) {
  FakeSettings settings;
  settings.sequences = 3;
  settings.window = 120;
  settings.cells = 240;
  settings.endless = true;
  Simulation simulation(settings);
  const auto oldest = simulation.submit("oldest");
  const auto grows = simulation.submit("grows");
  auto job = simulation.job("promised");
  job->max_tokens = 90;
  const auto promised = simulation.submit(std::move(job));
  simulation.run();
  const auto length = [](const auto& sink) {
    return sink->result() == nullptr ? 0 : sink->text.size();
  };
  EXPECT_EQ(length(oldest), 114U);
  EXPECT_EQ(length(grows), 115U);
  EXPECT_EQ(length(promised), 90U);
  EXPECT_LT(promised->ended_in_batch, 95U) << "it was parked";
  EXPECT_LT(oldest->ended_in_batch, 120U) << "it was parked";
  EXPECT_GT(grows->ended_in_batch, 120U) << "somebody has to wait";
}

}  // namespace
}  // namespace berth::worker
