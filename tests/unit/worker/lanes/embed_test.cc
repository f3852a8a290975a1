// Embedding jobs, under simulated time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/worker/lanes/simulation.h"

namespace berth::worker {
namespace {

using std::chrono::milliseconds;

struct Sink final : EmbedSink {
  void on_end(EmbedEnd last) override {
    EXPECT_FALSE(end.has_value()) << "ended twice";
    end = std::move(last);
  }
  [[nodiscard]] bool cancelled() const override { return wants_cancel; }
  [[nodiscard]] const EmbedResult* result() const {
    return end ? std::get_if<EmbedResult>(&*end) : nullptr;
  }
  [[nodiscard]] const Error* error() const { return end ? std::get_if<Error>(&*end) : nullptr; }
  std::optional<EmbedEnd> end;
  bool wants_cancel = false;
};

FakeSettings machine(std::uint32_t sequences = 8, std::uint32_t batch = 64) {
  FakeSettings settings;
  settings.sequences = sequences;
  settings.batch = batch;
  settings.purpose = Purpose::kEmbed;
  settings.embedding_size = 16;
  settings.prompt_speed = 1000;
  return settings;
}

using Inputs = std::vector<std::vector<TokenId>>;

std::unique_ptr<EmbedJob> job_of(const Simulation& simulation, Inputs inputs) {
  auto job = std::make_unique<EmbedJob>();
  job->inputs = std::move(inputs);
  job->arrived = simulation.now();
  job->sink = std::make_shared<Sink>();
  return job;
}

std::shared_ptr<Sink> submit(Simulation& simulation, std::unique_ptr<EmbedJob> job) {
  auto sink = std::static_pointer_cast<Sink>(job->sink);
  if (auto done = simulation.runner.submit_embed(std::move(job)); !done) sink->on_end(done.error());
  return sink;
}

// What the engine says to one input alone.
std::vector<float> vector_of(const std::vector<TokenId>& input) {
  auto settings = machine();
  settings.prompt_speed = 0;
  FakeEngine engine(settings);
  std::vector<std::vector<float>> out;
  std::string problem;
  const Inputs inputs = {input};
  EXPECT_EQ(engine.embed(inputs, out, problem), DecodeOutcome::kDone);
  return out.at(0);
}

TEST(Embeddings, OneVectorPerInputInTheirOrder) {
  Simulation simulation(machine());
  Inputs inputs;
  for (int i = 0; i < 30; ++i) {
    inputs.push_back(Simulation::tokens_of("input number " + std::to_string(i)));
  }
  const auto sink = submit(simulation, job_of(simulation, inputs));
  simulation.run();
  ASSERT_NE(sink->result(), nullptr);
  ASSERT_EQ(sink->result()->vectors.size(), inputs.size());
  std::uint64_t tokens = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(sink->result()->vectors[i], vector_of(inputs[i]));
    tokens += inputs[i].size();
  }
  EXPECT_EQ(sink->result()->prompt_tokens, tokens);
  EXPECT_EQ(simulation.runner.activity().active, 0U);
}

TEST(Embeddings, ASingleInputDoesNotWaitForThousands) {
  Simulation simulation(machine());
  const auto many = submit(simulation, job_of(simulation, Inputs(2048, {1, 2, 3, 4})));
  simulation.run(3);
  const auto single = submit(simulation, job_of(simulation, {{5, 6}}));
  simulation.run(2);
  EXPECT_NE(single->result(), nullptr);
  EXPECT_FALSE(many->end.has_value());
  simulation.run();
  ASSERT_NE(many->result(), nullptr);
  EXPECT_EQ(many->result()->vectors.size(), 2048U);
}

TEST(Embeddings, SmallJobsShareAGroup) {
  Simulation simulation(machine(8, 64));
  for (int i = 0; i < 8; ++i) submit(simulation, job_of(simulation, {{i, i + 1}}));
  std::size_t groups = 0;
  while (simulation.runner.turn()) ++groups;
  EXPECT_EQ(groups, 1U);
}

TEST(Embeddings, T31_ACancelledOneEndsWithinItsGroupAndTheOthersGoOn) {
  Simulation simulation(machine(8, 64));
  const auto cancelled = submit(simulation, job_of(simulation, Inputs(2, {1, 2, 3, 4})));
  simulation.engine.on_decode = [&] { cancelled->wants_cancel = true; };
  const auto start = simulation.now();
  simulation.run(1);
  EXPECT_TRUE(cancelled->end && std::holds_alternative<JobCancelled>(*cancelled->end));
  EXPECT_LT(simulation.now() - start, milliseconds(2));

  const auto stays = submit(simulation, job_of(simulation, {{1, 2, 3}}));
  const auto goes = submit(simulation, job_of(simulation, Inputs(20, {4, 5, 6})));
  simulation.engine.on_decode = [&] { goes->wants_cancel = true; };
  simulation.run();
  EXPECT_NE(stays->result(), nullptr);
  EXPECT_TRUE(goes->end && std::holds_alternative<JobCancelled>(*goes->end));
}

TEST(Embeddings, DeadlinesEndRunningOnes) {
  Simulation simulation(machine(8, 64));
  auto job = job_of(simulation, Inputs(2000, {1, 2, 3, 4}));
  job->deadline = simulation.now() + milliseconds(200);
  const auto sink = submit(simulation, std::move(job));
  simulation.run();
  ASSERT_NE(sink->error(), nullptr);
  EXPECT_EQ(sink->error()->reason, Reason::kDeadline);
}

TEST(Embeddings, WhatCannotBeComputedIsRefused) {
  Simulation simulation(machine(8, 64));
  const auto none = submit(simulation, job_of(simulation, {}));
  ASSERT_NE(none->error(), nullptr);
  EXPECT_EQ(none->error()->reason, Reason::kInvalidArgument);
  const auto empty = submit(simulation, job_of(simulation, {{1}, {}}));
  const auto too_long = submit(simulation, job_of(simulation, {std::vector<TokenId>(65, 1)}));
  simulation.run();
  ASSERT_NE(empty->error(), nullptr);
  EXPECT_THAT(empty->error()->message, testing::HasSubstr("Input 1 has 0 tokens"));
  ASSERT_NE(too_long->error(), nullptr);
  EXPECT_THAT(too_long->error()->message, testing::HasSubstr("65 tokens"));
}

TEST(Embeddings, AFailedGroupEndsItsJobsOnly) {
  Simulation simulation(machine(1, 64));
  const auto bad = submit(simulation, job_of(simulation, {{1}}));
  const auto good = submit(simulation, job_of(simulation, {{2}}));
  simulation.engine.fail_next = true;
  simulation.run();
  ASSERT_NE(bad->error(), nullptr);
  EXPECT_EQ(bad->error()->reason, Reason::kInternal);
  EXPECT_NE(good->result(), nullptr);
}

TEST(Embeddings, OnlyTheOwnerOfABadInputSuffers) {
  for (const bool fails : {true, false}) {
    Simulation simulation(machine(8, 64));
    (fails ? simulation.engine.failing_token : simulation.engine.unusable_token) = 13;
    const Inputs good_inputs(12, {1, 2, 3});
    const auto before = submit(simulation, job_of(simulation, {{1}}));
    const auto bad = submit(simulation, job_of(simulation, {{2}, {13}}));
    const auto after = submit(simulation, job_of(simulation, good_inputs));
    const auto bad_as_well = submit(simulation, job_of(simulation, {{13, 1}}));
    const auto last = submit(simulation, job_of(simulation, {{4}}));
    simulation.run();
    ASSERT_NE(bad->error(), nullptr);
    EXPECT_EQ(bad->error()->reason, Reason::kInternal);
    ASSERT_NE(bad_as_well->error(), nullptr);
    ASSERT_NE(before->result(), nullptr);
    EXPECT_EQ(before->result()->vectors.at(0), vector_of({1}));
    ASSERT_NE(after->result(), nullptr);
    EXPECT_EQ(after->result()->vectors.size(), good_inputs.size());
    ASSERT_NE(last->result(), nullptr);
    EXPECT_EQ(last->result()->vectors.at(0), vector_of({4}));
  }
}

TEST(Embeddings, AModelTakesOnlyWhatItIsServedFor) {
  Simulation embeds(machine());
  const auto refused = embeds.submit("a prompt");
  ASSERT_NE(refused->error(), nullptr);
  EXPECT_EQ(refused->error()->reason, Reason::kInvalidArgument);
  EXPECT_THAT(refused->error()->message, testing::HasSubstr("embeddings only"));

  Simulation generates{FakeSettings{}};
  const auto other = submit(generates, job_of(generates, {{1}}));
  ASSERT_NE(other->error(), nullptr);
  EXPECT_EQ(other->error()->reason, Reason::kInvalidArgument);
}

TEST(Embeddings, WhatCameBeforeTheModelWasLoadedIsRefusedAsWell) {
  Simulation::Observer observer;
  LaneRunner runner(
      observer, [] { return SteadyTime{}; }, nullptr);
  auto job = std::make_unique<EmbedJob>();
  job->inputs = {{1}};
  const auto sink = std::make_shared<Sink>();
  job->sink = sink;
  ASSERT_TRUE(runner.submit_embed(std::move(job)).has_value());
  FakeEngine engine(1);
  runner.open(engine);
  runner.turn();
  ASSERT_NE(sink->error(), nullptr);
  EXPECT_EQ(sink->error()->reason, Reason::kInvalidArgument);
}

TEST(Embeddings, TheQueueIsBounded) {
  Simulation simulation(machine());
  for (std::size_t i = 0; i < LaneRunner::kQueueLimit; ++i) {
    submit(simulation, job_of(simulation, Inputs(100, {1})));
  }
  simulation.run(1);  // they have begun, and still count
  const auto refused = submit(simulation, job_of(simulation, {{1}}));
  ASSERT_NE(refused->error(), nullptr);
  EXPECT_EQ(refused->error()->reason, Reason::kQueueFull);
}

TEST(Embeddings, StopEndsThemAll) {
  Simulation simulation(machine());
  const auto begun = submit(simulation, job_of(simulation, Inputs(100, {1})));
  simulation.run(1);
  const auto waiting = submit(simulation, job_of(simulation, {{1}}));
  simulation.finish();
  for (const auto& sink : {begun, waiting}) {
    ASSERT_NE(sink->error(), nullptr);
    EXPECT_EQ(sink->error()->reason, Reason::kShuttingDown);
  }
}

RC_GTEST_PROP(Embeddings, EveryJobGetsItsVectorsHoweverTheyShareGroups, ()) {
  const auto batch = *rc::gen::inRange<std::uint32_t>(8, 64);
  Simulation simulation(machine(*rc::gen::inRange<std::uint32_t>(1, 9), batch));
  struct One {
    Inputs inputs;
    std::shared_ptr<Sink> sink;
    bool cancelled;
  };
  std::vector<One> all;
  const auto count = *rc::gen::inRange(1, 12);
  for (int i = 0; i < count; ++i) {
    Inputs inputs;
    const auto size = *rc::gen::inRange(1, 15);
    for (int input = 0; input < size; ++input) {
      const auto tokens = *rc::gen::inRange<std::uint32_t>(1, batch + 1);
      inputs.emplace_back(tokens, static_cast<TokenId>(tokens));
    }
    const bool cancel = *rc::gen::weightedElement<bool>({{5, false}, {1, true}});
    auto sink = submit(simulation, job_of(simulation, inputs));
    simulation.run(*rc::gen::inRange<std::size_t>(0, 3));
    sink->wants_cancel = cancel;
    all.push_back(One{std::move(inputs), std::move(sink), cancel});
  }
  simulation.run();
  for (const auto& one : all) {
    RC_ASSERT(one.sink->end.has_value());
    if (one.sink->result() == nullptr) {
      RC_ASSERT(one.cancelled);
      continue;
    }
    RC_ASSERT(one.sink->result()->vectors.size() == one.inputs.size());
    for (std::size_t i = 0; i < one.inputs.size(); ++i) {
      RC_ASSERT(one.sink->result()->vectors[i] == vector_of(one.inputs[i]));
    }
  }
  RC_ASSERT(simulation.violations.empty());
}

}  // namespace
}  // namespace berth::worker
