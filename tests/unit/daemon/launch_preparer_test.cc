#include "supervisor/launch_preparer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "supervisor/command_runs.h"
#include "supervisor/process/file_log_watcher.h"
#include "supervisor/process/log_judge.h"
#include "tests/simulation/sim_world.h"
#include "tests/unit/process/temp_dir.h"

namespace berth {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Lines = std::vector<std::string>;

class LaunchPreparerTest : public ::testing::Test {
 protected:
  LaunchPreparerTest() : LaunchPreparerTest(process::kLongestLiveLog, process::kKeptOfLiveLog) {}
  LaunchPreparerTest(std::uint64_t cut_over, std::uint64_t cut_keeps)
      : cut_over_(cut_over), cut_keeps_(cut_keeps) {}
  Uuid prepare() {
    const Uuid instance = world_.ids.next();
    prepared_.reset();
    problem_.reset();
    preparer_.prepare(demo_, instance, {}, [this](Result<residency::PreparedLaunch> prepared) {
      if (!prepared) {
        problem_ = prepared.error();
      } else {
        prepared_ = *std::move(prepared);
      }
    });
    return instance;
  }
  // Of a command that has to listen on a port.
  void prepare_command(const std::string& name) {
    const auto model = sim::make_model(name);
    model->settings.kind = catalog::Kind::kCommand;
    model->settings.command = {"/bin/" + name, "{port}"};
    auto& answer = answers_[name];
    answer.reset();
    preparer_.prepare(
        model, world_.ids.next(), {},
        [&answer](Result<residency::PreparedLaunch> got) { answer = std::move(got); });
    for (int step = 0; step < 4; ++step) pool_and_settle();
  }
  void write(std::string_view text) {
    ASSERT_EQ(::write(prepared_->spec.output.get(), text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }
  Lines tail(const Uuid& instance) {
    std::optional<Lines> answer;
    preparer_.log_tail("demo", instance, [&answer](Lines lines) { answer = std::move(lines); });
    EXPECT_FALSE(answer) << "never from within the call";
    pool_and_settle();
    EXPECT_TRUE(answer);
    return answer.value_or(Lines{});
  }
  // The pool works only now.
  void pool_and_settle() {
    for (const auto& work : std::exchange(pool_, {})) work();
    std::erase_if(alone_, [this](const auto& look) {
      if (look.first == hung_) return false;
      look.second();
      return true;
    });
    world_.clock.settle();
  }

  testing::TempDir dir_;
  sim::SimWorld world_;
  std::vector<std::function<void()>> pool_;
  // Looks at programs, each on a thread of its own; that at `hung_` never returns.
  std::vector<std::pair<std::string, std::function<void()>>> alone_;
  std::string hung_;
  std::map<std::string, std::optional<Result<residency::PreparedLaunch>>> answers_;
  CommandRuns commands_;
  const std::uint64_t cut_over_;
  const std::uint64_t cut_keeps_;
  process::FileLogWatcher* watcher_ = nullptr;
  std::shared_ptr<catalog::Model> demo_ = sim::make_model("demo");
  std::optional<residency::PreparedLaunch> prepared_;
  std::optional<Error> problem_;
  LaunchPreparer preparer_{
      {.clock = world_.clock,
       .events = world_.events,
       .run_blocking = [this](std::function<void()> work) { pool_.push_back(std::move(work)); },
       .worker_program = "/berth-worker",
       .shim_program = "/berth-shim",
       .environment = {},
       .run_dir = dir_.file("run"),
       .mark_owner = "test",
       .log = {.directory = dir_.file("log")},
       .commands = commands_,
       .programs = {.find = [](const ProgramPlace& place) -> Result<std::string> {
                      return place.name;
                    },
                    .run_alone =
                        [this](const ProgramPlace& place, std::function<void()> work) {
                          alone_.emplace_back(place.name, std::move(work));
                          return Status{};
                        }},
       .log_is_read =
           [this](const std::string& path) { return watcher_ != nullptr && watcher_->reads(path); },
       .cut_over = cut_over_,
       .cut_keeps = cut_keeps_}};
};

class SmallLogTest : public LaunchPreparerTest {
 protected:
  SmallLogTest() : LaunchPreparerTest(kLimit, kLimit / 8) {}
  static constexpr std::uint64_t kLimit = 2 * process::LogJudge::kStepBytes;
};

TEST_F(LaunchPreparerTest, L24_ARecordNeverCarriesANewerInstancesLines) {
  const Uuid older = prepare();
  pool_and_settle();
  write("older\n");
  EXPECT_THAT(tail(older), ElementsAre("older"));

  const Uuid newer = prepare();
  EXPECT_THAT(tail(newer), IsEmpty());
  EXPECT_THAT(tail(older), IsEmpty()) << "from here on the file may hold the newer one's words";
  pool_and_settle();
  write("newer\n");
  EXPECT_THAT(tail(older), IsEmpty());
  EXPECT_THAT(tail(newer), ElementsAre("newer"));
}

TEST_F(LaunchPreparerTest, L10_ALogThatNobodyReadsIsCutWithinASecond) {
  prepare();
  pool_and_settle();
  ASSERT_TRUE(prepared_->log);
  // A hole, which costs no disk.
  constexpr off_t kFlood = off_t{300} << 20U;
  ASSERT_EQ(::ftruncate(prepared_->spec.output.get(), kFlood), 0);
  write("last\n");
  for (int look = 0; look < 2; ++look) {
    world_.clock.advance(std::chrono::seconds(1));
    pool_and_settle();
    EXPECT_LE(std::filesystem::file_size(prepared_->log->path), (1U << 20U) + 64U);
    EXPECT_EQ(world_.events.count("log.truncated"), 1U) << "once for each cut";
  }
  EXPECT_EQ(sim::SimEvents::field(*world_.events.last("log.truncated"), "model"), "demo");
}

// The two cut at the same time: the look at the sizes leaves to the watch what that has not read.
TEST_F(SmallLogTest, L10_L11_WhatALoadsWatchHasNotReadIsNotCut) {
  prepare();
  pool_and_settle();
  // More than a watch reads in a step, and than a log may have that nobody reads.
  std::string text;
  while (text.size() < 3 * kLimit / 4) text += "loading a tensor\n";
  write(text);
  write("GGML_ASSERT(n_tokens > 0) failed\n");
  write(text);
  process::FileLogWatcher watcher(
      {.clock = world_.clock,
       .run_blocking = [this](std::function<void()> work) { pool_.push_back(std::move(work)); },
       .on_readable = nullptr,
       .use_inotify = false,
       .on_cut = [this](const std::string& model,
                        std::uint64_t size) { preparer_.tell_cut(model, size); },
       .cut_over = kLimit,
       .cut_keeps = kLimit / 8});
  watcher_ = &watcher;
  std::optional<core::LogVerdict> verdict;
  const auto watch = watcher.watch(*prepared_->log, {},
                                   [&](core::LogVerdict found) { verdict = std::move(found); });
  EXPECT_TRUE(watcher.reads(prepared_->log->path));
  world_.clock.advance(std::chrono::seconds(1));
  ASSERT_EQ(pool_.size(), 2U) << "the watch and the look at the sizes";
  std::swap(pool_.front(), pool_.back());
  for (int step = 0; step < 8 && !verdict; ++step) pool_and_settle();
  EXPECT_TRUE(verdict);

  EXPECT_EQ(world_.events.count("log.truncated"), 1U) << "by the watch, which has read enough";

  // Now it is a log that nobody reads.
  EXPECT_FALSE(watcher.reads(prepared_->log->path));
  write(text + text);
  world_.clock.advance(std::chrono::seconds(1));
  pool_and_settle();
  EXPECT_LE(std::filesystem::file_size(prepared_->log->path), kLimit);
  EXPECT_EQ(world_.events.count("log.truncated"), 2U);
  watcher_ = nullptr;
}

TEST_F(SmallLogTest, L10_ALogThatCannotBeCutIsToldOnce) {
  prepare();
  pool_and_settle();
  ASSERT_EQ(::ftruncate(prepared_->spec.output.get(), static_cast<off_t>(2 * kLimit)), 0);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit nothing{0, before.rlim_max};
  for (int look = 0; look < 3; ++look) {
    world_.clock.advance(std::chrono::seconds(1));
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &nothing), 0);
    pool_and_settle();
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    ASSERT_EQ(world_.events.count("server.degraded"), 1U);
  }
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(sim::SimEvents::field(*world_.events.last("server.degraded"), "part"), "log");
  const std::string problem =
      sim::SimEvents::field(*world_.events.last("server.degraded"), "problem");
  EXPECT_NE(problem.find("demo"), std::string::npos);
  EXPECT_NE(problem.find(prepared_->log->path), std::string::npos);
  EXPECT_EQ(world_.events.count("log.truncated"), 0U);
  world_.clock.advance(std::chrono::seconds(1));
  pool_and_settle();
  EXPECT_EQ(world_.events.count("log.truncated"), 1U) << "tried again";
}

TEST_F(LaunchPreparerTest, L24_NorWhereTheNewerBeginsWhileTheLogIsRead) {
  const Uuid older = prepare();
  pool_and_settle();
  write("older\n");
  std::optional<Lines> answer;
  preparer_.log_tail("demo", older, [&answer](Lines lines) { answer = std::move(lines); });
  prepare();
  pool_and_settle();
  ASSERT_TRUE(answer);
  EXPECT_THAT(*answer, IsEmpty());
}

TEST_F(LaunchPreparerTest, L21_TheDirectoryOfSocketsIsMadeAgain) {
  std::filesystem::remove_all(dir_.file("run"));
  prepare();
  pool_and_settle();
  ASSERT_TRUE(prepared_);
  EXPECT_TRUE(std::filesystem::is_directory(dir_.file("run/workers")));
  EXPECT_TRUE(std::filesystem::is_empty(dir_.file("run/workers")));
}

TEST_F(LaunchPreparerTest, L21_WhereNoSocketCanBeMadeTheModelIsNotAtFault) {
  std::ofstream(dir_.file("run")) << "in the way";
  prepare();
  pool_and_settle();
  EXPECT_FALSE(prepared_);
  ASSERT_TRUE(problem_);
  EXPECT_EQ(problem_->reason, Reason::kLoadFailed);
  EXPECT_EQ(problem_->extras->failure->failure_class, "resource");
  std::filesystem::remove(dir_.file("run"));
  prepare();
  pool_and_settle();
  EXPECT_TRUE(prepared_);
}

TEST_F(LaunchPreparerTest, L27_APortIsKeptUntilTheModelRunsAgain) {
  prepare_command("a");
  prepare_command("b");
  EXPECT_EQ(commands_.ports().claimed(), 2U) << "neither may have bound its port yet";
  prepare_command("a");
  EXPECT_EQ(commands_.ports().claimed(), 2U);
  for (const auto& [name, answer] : answers_) {
    ASSERT_TRUE(answer) << name;
    ASSERT_TRUE(*answer) << (*answer).error().message;
    EXPECT_EQ((**answer).spec.program, "/bin/" + name);
  }
}

TEST_F(LaunchPreparerTest, L24_L27_AnInterruptedLaunchLeavesTheRunOfItsSuccessorAlone) {
  // Of a launch that is overtaken after that many steps, by one of another program.
  for (const int steps : {0, 1, 2}) {
    const auto older = sim::make_model("m");
    older->settings.kind = catalog::Kind::kCommand;
    older->settings.command = {"/bin/older", "{port}"};
    std::optional<Result<residency::PreparedLaunch>> answer;
    const Uuid first = world_.ids.next();
    const Uuid second = world_.ids.next();
    preparer_.prepare(older, first, {}, [&answer](Result<residency::PreparedLaunch> got) {
      answer = std::move(got);
    });
    for (int step = 0; step < steps; ++step) pool_and_settle();
    hung_ = "/bin/older";
    const auto newer = sim::make_model("m");
    newer->settings.kind = catalog::Kind::kCommand;
    newer->settings.command = {"/bin/newer", "{port}"};
    std::optional<Result<residency::PreparedLaunch>> successor;
    preparer_.prepare(newer, second, {}, [&successor](Result<residency::PreparedLaunch> got) {
      successor = std::move(got);
    });
    for (int step = 0; step < 4; ++step) pool_and_settle();
    hung_.clear();
    for (int step = 0; step < 4; ++step) pool_and_settle();
    ASSERT_TRUE(successor && *successor);
    EXPECT_TRUE(commands_.find(second.to_string())) << "after " << steps << " steps";
    EXPECT_FALSE(commands_.find(first.to_string()));
    ASSERT_TRUE(answer);
    EXPECT_FALSE(*answer);
  }
}

TEST_F(LaunchPreparerTest, L7_L25_AProgramThatCannotBeReadHoldsUpNoOtherModel) {
  hung_ = "/bin/hung";
  prepare_command("hung");
  prepare_command("well");
  ASSERT_TRUE(answers_["well"]) << "its load waits for another's file system";
  EXPECT_TRUE(*answers_["well"]);
  EXPECT_FALSE(answers_["hung"]);
  prepare();
  pool_and_settle();
  EXPECT_TRUE(prepared_) << "nor does a worker of our own";

  world_.clock.advance(std::chrono::minutes(1));
  ASSERT_TRUE(answers_["hung"]);
  ASSERT_FALSE(*answers_["hung"]);
  EXPECT_EQ((*answers_["hung"]).error().extras->failure->failure_class, "timeout");
  EXPECT_EQ(commands_.ports().claimed(), 1U) << "what never starts keeps no port";
}

}  // namespace
}  // namespace berth
