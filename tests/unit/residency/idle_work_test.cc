#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "common/result.h"
#include "common/uuid.h"
#include "supervisor/core/memory/decision.h"
#include "supervisor/core/memory/snapshot.h"
#include "supervisor/residency/residency.h"
#include "tests/unit/residency/room_harness.h"

namespace berth::residency {
namespace {

// A probe that holds the model "a" softly and has memory beside it.
class IdleWorkTest : public RoomTest {
 protected:
  IdleWorkTest() {
    world_.memory.jobs = [this] { return jobs_; };
    world_.memory.yield_jobs = [this](const std::vector<Uuid>& ids) {
      told_.insert(told_.end(), ids.begin(), ids.end());
    };
    restart();
  }

  void begin_probe(std::uint64_t extra_mib) {
    probe_ = request(host_model("a", 400), minutes(5), RequestClass::kIdle);
    run_until_answered(*probe_);
    core::IdleJob& job = jobs_.emplace_back();
    job.id = world_.ids.next();
    job.kind = "context_probe";
    job.model = "a";
    job.instance = Uuid::parse(probe_->lease.instance_id());
    job.extra[core::kHostDomain] = extra_mib * kMiB;
    job.gives_way_within = seconds(2);
    residency_->memory_changed();
    world_.clock.settle();
  }
  void yield() {
    jobs_.clear();
    probe_->lease = {};
    residency_->memory_changed();
  }

  std::vector<core::IdleJob> jobs_;
  std::vector<Uuid> told_;
  std::unique_ptr<TestClient> probe_;
};

TEST_F(IdleWorkTest, I4_AJobIsToldOnceAndWhatItHoldsIsTakenWhenItHasYielded) {
  begin_probe(300);
  const auto b = request(host_model("b", 700));
  world_.clock.settle();
  EXPECT_EQ(told_, std::vector<Uuid>{jobs_.front().id});
  EXPECT_EQ(b->progress.back().waits_for, "idle_work");
  residency_->memory_changed();
  world_.clock.advance(seconds(1));
  EXPECT_EQ(told_.size(), 1U);
  EXPECT_EQ(state_of("a"), "busy") << "it has its time";
  yield();
  world_.clock.advance(seconds(1));
  EXPECT_TRUE(b->lease);
  EXPECT_EQ(loads(), "ab");
}

TEST_F(IdleWorkTest, I4_WhereWhatAJobHasBesideItsModelDoesTheModelStays) {
  begin_probe(300);
  const auto b = request(host_model("b", 600));
  world_.clock.settle();
  EXPECT_EQ(told_.size(), 1U);
  yield();
  probe_ = request(host_model("a", 400), minutes(5), RequestClass::kIdle);
  world_.clock.advance(seconds(1));
  EXPECT_TRUE(b->lease);
  EXPECT_EQ(world_.events.count("model.evicted"), 0U);
}

TEST_F(IdleWorkTest, I4_AJobThatDoesNotYieldWithinItsBoundLosesItsModel) {
  begin_probe(300);
  const auto b = request(host_model("b", 500));
  world_.clock.advance(milliseconds(1900));
  EXPECT_EQ(state_of("a"), "busy");
  world_.clock.advance(milliseconds(200));
  EXPECT_EQ(last("model.evicted", "cause"), "idle_work");
  jobs_.clear();
  residency_->memory_changed();
  world_.clock.advance(seconds(20));
  EXPECT_TRUE(b->lease);
}

TEST_F(IdleWorkTest, I4_IdleWorkIsNotToldToYieldForIdleWork) {
  begin_probe(300);
  const auto b = request(host_model("b", 500), minutes(5), RequestClass::kIdle);
  world_.clock.advance(seconds(5));
  EXPECT_TRUE(told_.empty());
  EXPECT_FALSE(b->lease);
}

TEST_F(RoomTest, M18_TheBankKeepsWhatNobodyNeedsHoweverOftenItIsTold) {
  world_.memory.shrink_takes = seconds(1);
  world_.memory.changed = [this] { residency_->memory_changed(); };
  world_.memory.bank[core::kHostDomain] = 700 * kMiB;
  const auto a = request(host_model("a", 500));
  world_.clock.settle();
  residency_->memory_changed();
  world_.clock.settle();
  EXPECT_EQ(world_.memory.bank[core::kHostDomain], 700 * kMiB) << "it takes its time";
  EXPECT_FALSE(a->lease);
  world_.clock.advance(seconds(2));
  EXPECT_EQ(world_.memory.bank[core::kHostDomain], 500 * kMiB);
  EXPECT_TRUE(a->lease);
}

TEST_F(RoomTest, M18_TheBankShrinksOnceForAllWhoWait) {
  world_.memory.shrink_takes = seconds(1);
  world_.memory.changed = [this] { residency_->memory_changed(); };
  world_.memory.bank[core::kHostDomain] = 1000 * kMiB;
  const auto a = request(host_model("a", 300));
  const auto b = request(host_model("b", 200));
  world_.clock.advance(seconds(3));
  EXPECT_EQ(world_.memory.bank[core::kHostDomain], 500 * kMiB);
  EXPECT_TRUE(a->lease);
  EXPECT_TRUE(b->lease);
}

TEST_F(RoomTest, M7_WhatADryRunSaysIsDone) {
  const auto a = host_model("a", 600);
  EXPECT_TRUE(std::holds_alternative<core::Fits>(residency_->plan(*a).decision));
  resident(a);
  EXPECT_EQ(loads(), "a");
  world_.clock.advance(seconds(11));

  const auto b = host_model("b", 700);
  const core::Decision evict = residency_->plan(*b).decision;
  ASSERT_TRUE(std::holds_alternative<core::Evict>(evict));
  auto user = request(b);
  world_.clock.settle();
  EXPECT_EQ(last("model.evicted", "instance"),
            std::get<core::Evict>(evict).victims.front().id.to_string());
  run_until_answered(*user);

  const auto c = host_model("c", 500);
  const core::Decision park = residency_->plan(*c).decision;
  ASSERT_TRUE(std::holds_alternative<core::Park>(park));
  const auto waits = request(c);
  world_.clock.settle();
  EXPECT_EQ(waits->progress.back().waits_for, core::park_name(std::get<core::Park>(park).what));

  const auto d = host_model("d", 1500);
  const core::Decision refused = residency_->plan(*d).decision;
  ASSERT_TRUE(std::holds_alternative<core::Refuse>(refused));
  const auto never = request(d);
  world_.clock.settle();
  ASSERT_TRUE(never->failed_with(Reason::kInsufficientMemory));
  EXPECT_EQ(never->error->extras->memory->deficit_bytes,
            std::get<core::Refuse>(refused).deficit[core::kHostDomain]);
}

TEST_F(ResidencyTest, M13_WhoCameFirstHearsFirst) {
  sim::WorkerScript three;
  three.sequences = 3;
  script(three);
  std::string order;
  std::vector<std::unique_ptr<TestClient>> clients;
  for (const char name : {'1', '2', '3'}) {
    clients.push_back(request(demo_));
    clients.back()->then = [&order, name] { order += name; };
  }
  world_.clock.advance(seconds(2));
  EXPECT_EQ(order, "123");
}

}  // namespace
}  // namespace berth::residency
