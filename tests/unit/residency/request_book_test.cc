#include "supervisor/residency/request_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/sim_clock.h"
#include "tests/simulation/sim_events.h"

namespace berth::residency {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class RequestBookTest : public testing::Test {
 protected:
  std::shared_ptr<RequestEntry> arrive(const std::string& id, const std::string& tenant = "uid:1") {
    RequestArrival arrival;
    arrival.id = id;
    arrival.model = "demo";
    arrival.tenant = tenant;
    arrival.protocol = "grpc";
    arrival.deadline = clock_.now() + 60s;
    arrival.cancel = [this, id] { cancelled_.push_back(id); };
    return book_.arrive(std::move(arrival));
  }

  void refuse(const std::string& tenant, Reason reason = Reason::kUnknownModel) {
    book_.refused({.id = "r",
                   .model = {},
                   .tenant = tenant,
                   .protocol = "http",
                   .deadline = {},
                   .cancel = {}},
                  "zebra", Error(reason, "There is none."));
  }

  sim::SimClock clock_;
  sim::SimEvents events_{clock_};
  RequestBook book_{clock_, events_};
  std::vector<std::string> cancelled_;
};

TEST_F(RequestBookTest, ARequestsLineSaysWhatHappenedWhen) {
  const WallTime start = clock_.wall_now();
  const auto entry = arrive("r-1");
  clock_.advance(1s);
  entry->waiting(/*loading=*/true);
  EXPECT_EQ(book_.live().at(0).stage, RequestStage::kLoading);
  clock_.advance(1s);
  entry->admitted("i-1");
  entry->prefill(3, 10);
  EXPECT_EQ(book_.live().at(0).stage, RequestStage::kPrefill);
  EXPECT_EQ(book_.live().at(0).prefill_done, 3U);
  clock_.advance(1s);
  entry->tokens(1);
  clock_.advance(1s);
  entry->tokens(1);
  const RequestRecord running = book_.live().at(0);
  EXPECT_EQ(running.stage, RequestStage::kGenerating);
  EXPECT_EQ(running.tokens, 2U);
  EXPECT_EQ(running.deadline, start + 60s);

  entry->end(RequestStage::kFinished, std::nullopt, RequestUsage{10, 4, 2});
  EXPECT_THAT(book_.live(), IsEmpty());
  const RequestRecord done = book_.ended().at(0);
  EXPECT_EQ(done.stage, RequestStage::kFinished);
  EXPECT_EQ(done.instance_id, "i-1");
  EXPECT_EQ(done.arrived, start);
  EXPECT_EQ(done.admitted, start + 2s);
  EXPECT_EQ(done.first_token, start + 3s);
  EXPECT_EQ(done.ended, start + 4s);
  EXPECT_EQ(done.to_first_token, Duration(3s));
  EXPECT_EQ(done.usage->cached, 4U);
}

TEST_F(RequestBookTest, OnlyTheFirstEndCounts) {
  std::vector<std::string> ends;
  book_.on_end([&](const RequestRecord& record) {
    ends.push_back(std::string(request_stage_name(record.stage)) + " " + record.reason);
  });
  const auto entry = arrive("r-1");
  entry->end(RequestStage::kFailed, Reason::kWorkerDied);
  entry->end(RequestStage::kFinished);
  entry->waiting(true);
  EXPECT_THAT(ends, ElementsAre("failed worker_died"));
  EXPECT_EQ(book_.ended().at(0).stage, RequestStage::kFailed);
}

TEST_F(RequestBookTest, TheLastHundredThatEndedAreKept) {
  for (int i = 0; i < 150; ++i) arrive("r-" + std::to_string(i))->end(RequestStage::kFinished);
  const std::vector<RequestRecord> ended = book_.ended();
  ASSERT_THAT(ended, SizeIs(100));
  EXPECT_EQ(ended.front().id, "r-149");
  EXPECT_EQ(ended.back().id, "r-50");
}

TEST_F(RequestBookTest, BeyondItsBoundARequestIsServedWithoutALine) {
  std::vector<std::shared_ptr<RequestEntry>> entries;
  for (std::size_t i = 0; i < RequestBook::kMostLive; ++i) entries.push_back(arrive("r"));
  const auto one_more = arrive("more");
  EXPECT_THAT(book_.live(), SizeIs(RequestBook::kMostLive));
  one_more->end(RequestStage::kFinished);
  EXPECT_EQ(book_.ended().at(0).id, "more");
  EXPECT_EQ(book_.counts().at(0), RequestBook::kMostLive);
}

TEST_F(RequestBookTest, I12_ACancelReachesOnlyTheTenantsOwn) {
  const auto mine = arrive("mine", "uid:1");
  const auto other = arrive("other", "uid:2");
  EXPECT_EQ(book_.cancel("other", "uid:1"), 0U);
  EXPECT_EQ(book_.cancel("mine", "uid:1"), 1U);
  EXPECT_EQ(book_.cancel("other", std::nullopt), 1U);
  EXPECT_EQ(book_.cancel("nobody", std::nullopt), 0U);
  EXPECT_THAT(cancelled_, ElementsAre("mine", "other"));
  mine->end(RequestStage::kCancelled);
  EXPECT_EQ(book_.cancel("mine", std::nullopt), 0U) << "it is over";
}

TEST_F(RequestBookTest, AFloodOfRefusalsDoesNotFloodTheEvents) {
  for (int i = 0; i < 1000; ++i) refuse("tenant-" + std::to_string(i % 10));
  clock_.settle();
  EXPECT_EQ(events_.count("request.refused"), RequestBook::kRefusalsTold);
  EXPECT_EQ(events_.count("request.refusals_omitted"), 0U);
  clock_.advance(2s);
  ASSERT_EQ(events_.count("request.refusals_omitted"), 1U);
  EXPECT_EQ(sim::SimEvents::field(*events_.last("request.refusals_omitted"), "count"), "950");
  EXPECT_EQ(sim::SimEvents::field(*events_.last("request.refused"), "protocol"), "http");
  EXPECT_EQ(book_.ended().at(0).reason, "unknown_model");

  // The next second tells again.
  book_.tell_refusal({.request = "again"});
  EXPECT_EQ(events_.count("request.refused"), RequestBook::kRefusalsTold + 1);
}

TEST_F(RequestBookTest, OneTenantsRefusalsPushOutNothingOfAnother) {
  for (int i = 0; i < 80; ++i) {
    arrive("mine-" + std::to_string(i), "uid:1")->end(RequestStage::kFinished);
  }
  for (int i = 0; i < 1000; ++i) refuse("flood");
  clock_.settle();
  EXPECT_EQ(events_.count("request.refused"), RequestBook::kRefusalsToldOfTenant);
  refuse("uid:1");
  clock_.settle();
  EXPECT_EQ(events_.count("request.refused"), RequestBook::kRefusalsToldOfTenant + 1);
  EXPECT_EQ(sim::SimEvents::field(*events_.last("request.refused"), "tenant"), "uid:1");

  EXPECT_THAT(book_.ended("uid:1"), SizeIs(81));
  EXPECT_THAT(book_.ended("flood"), SizeIs(RequestBook::kRefusedKept));
  EXPECT_THAT(book_.ended("nobody"), IsEmpty());
  const auto all = book_.ended();
  ASSERT_THAT(all, SizeIs(RequestBook::kEndedKept));
  EXPECT_EQ(all.front().tenant, "uid:1");
  EXPECT_EQ(all.at(1).tenant, "flood");
  EXPECT_EQ(all.back().id, "mine-1") << "the oldest one is the hundred and first";
}

TEST_F(RequestBookTest, OfHowManyTenantsItIsKeptIsBounded) {
  for (std::size_t i = 0; i < RequestBook::kTenantsKept + 1; ++i) {
    arrive("r", "t" + std::to_string(i))->end(RequestStage::kFinished);
  }
  EXPECT_THAT(book_.ended("t0"), IsEmpty());
  EXPECT_THAT(book_.ended("t1"), SizeIs(1));
}

TEST_F(RequestBookTest, AFloodOfRefusalsIsCountedAndDoesNotFloodTheCoreStrand) {
  std::map<std::string, std::uint64_t> counted;
  book_.on_end([&counted](const RequestRecord& record) { counted[record.reason] += record.alike; });
  for (int i = 0; i < 10'000; ++i) {
    refuse("", i % 2 == 0 ? Reason::kNotFound : Reason::kUnauthenticated);
  }
  EXPECT_TRUE(counted.empty()) << "not on the thread that refuses";
  int tasks = 0;
  clock_.on_step([&tasks] { ++tasks; });
  clock_.settle();
  clock_.on_step({});
  EXPECT_EQ(tasks, 1) << "for all of them";
  EXPECT_EQ(counted["not_found"], 5'000U);
  EXPECT_EQ(counted["unauthenticated"], 5'000U);
  EXPECT_THAT(book_.ended(), IsEmpty()) << "nobody was known";
  EXPECT_EQ(events_.count("request.refused"), RequestBook::kRefusalsToldOfTenant);
  clock_.advance(2s);
  EXPECT_EQ(sim::SimEvents::field(*events_.last("request.refusals_omitted"), "count"), "9990");
  // The next ones are seen, too.
  refuse("uid:1", Reason::kNotFound);
  clock_.settle();
  EXPECT_EQ(counted["not_found"], 5'001U);
  EXPECT_THAT(book_.ended("uid:1"), SizeIs(1));
}

TEST_F(RequestBookTest, WhatComesWithAWrongKeyIsNobodysRequest) {
  std::size_t counted = 0;
  book_.on_end([&counted](const RequestRecord&) { ++counted; });
  refuse("anonymous", Reason::kUnauthenticated);
  clock_.settle();
  EXPECT_EQ(counted, 1U);
  EXPECT_THAT(book_.ended(), IsEmpty());
  EXPECT_EQ(sim::SimEvents::field(*events_.last("request.refused"), "tenant"), "");
}

}  // namespace
}  // namespace berth::residency
