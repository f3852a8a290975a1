#include "supervisor/core/memory/plan_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "supervisor/core/memory/planner.h"
#include "tests/unit/core/memory/plans.h"

namespace berth::core {
namespace {

using std::chrono::seconds;
using testing::ago;
using testing::as;
using testing::busy;
using ::testing::HasSubstr;
using testing::in_host;
using testing::in_state;
using testing::kNow;
using testing::machine;
using testing::need_in_host;
using testing::need_of;
using testing::numbered;
using testing::on;
using testing::option_on;
using testing::ready;

constexpr std::uint64_t kGiB = 1ULL << 30;
constexpr WallTime kWall{std::chrono::hours(500'000)};

// As machine(), with room for GiB.
Snapshot large_machine(std::uint64_t host, const std::vector<std::uint64_t>& devices = {}) {
  Snapshot snapshot = machine(host * kGiB, devices);
  for (Domain& domain : snapshot.domains) domain.total = 1000 * kGiB;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    snapshot.domains[i + 1].budget = devices[i] * kGiB;
  }
  return snapshot;
}

std::string words(const Snapshot& snapshot, const Need& need) {
  return sentence_of(plan(snapshot, need), snapshot, need);
}

TEST(PlanWords, M7_EveryDecisionHasItsSentence) {
  Snapshot snapshot = large_machine(10);
  EXPECT_EQ(words(snapshot, need_in_host("b", 4 * kGiB)),
            "b fits: it takes 4.00 GiB of host, and leaves 6.00 GiB of host.");
  snapshot.bank = in_host(8 * kGiB);
  EXPECT_EQ(words(snapshot, need_in_host("b", 4 * kGiB)),
            "b fits, with 4.00 GiB of host, as soon as kept sessions give 2.00 GiB of host.");
  snapshot.bank = in_host(kGiB);
  snapshot.entries = {ready(1, "a", in_host(5 * kGiB))};
  EXPECT_EQ(words(snapshot, need_in_host("b", 10 * kGiB)),
            "b takes 10.0 GiB of host, where 6.00 GiB of host are missing: a is stopped and kept "
            "sessions give 1.00 GiB of host.");
  snapshot.entries[0].soft = 1;
  snapshot.jobs = {{.id = numbered(9),
                    .kind = "context_probe",
                    .instance = numbered(1),
                    .gives_way_within = seconds(15)}};
  EXPECT_EQ(words(snapshot, need_in_host("b", 6 * kGiB)),
            "b takes 6.00 GiB of host, where 2.00 GiB of host are missing: idle work gives way "
            "within 15.0 s, a is taken from idle work.");
  snapshot.jobs.clear();
  snapshot.entries = {busy(1, "a", in_host(5 * kGiB))};
  EXPECT_EQ(words(snapshot, need_in_host("b", 8 * kGiB)),
            "b takes 8.00 GiB of host, where 4.00 GiB of host are missing: it waits for the "
            "clients of a.");
  EXPECT_EQ(words(snapshot, need_in_host("b", 12 * kGiB)),
            "b needs 12.0 GiB of host, which is 2.00 GiB of host more than models may ever have "
            "here.");
}

TEST(PlanWords, M14_NeverFitsIs507WithAllItsNumbers) {
  Snapshot snapshot = large_machine(10, {8});
  snapshot.entries = {ready(1, "a", on(1, 3 * kGiB))};
  const Need need = need_of("b", {option_on(1, on(1, 11 * kGiB))});
  const Error error = error_of(as<Refuse>(plan(snapshot, need)), snapshot, need, kWall,
                               WouldFit{.context = 8192, .sequences = 2});
  EXPECT_EQ(error.reason, Reason::kInsufficientMemory);
  ASSERT_TRUE(error.extras && error.extras->memory);
  const MemoryShortage& memory = *error.extras->memory;
  EXPECT_EQ(memory.domain, "gpu0");
  EXPECT_EQ(memory.needed_bytes, 11 * kGiB);
  EXPECT_EQ(memory.limit_bytes, 8 * kGiB);
  EXPECT_EQ(memory.available_bytes, 5 * kGiB);
  EXPECT_EQ(memory.deficit_bytes, 3 * kGiB);
  ASSERT_TRUE(memory.would_fit);
  EXPECT_EQ(memory.would_fit->context, 8192U);
  EXPECT_EQ(memory.would_fit->sequences, 2U);
  EXPECT_FALSE(error.extras->retry_after_seconds);
  EXPECT_THAT(error.message, HasSubstr("A window of 8192 tokens with 2 sequences would fit."));
}

TEST(PlanWords, M14_NoRoomNowIs503WithRetryAfter) {
  Snapshot snapshot = large_machine(10);
  snapshot.entries = {busy(1, "a", in_host(5 * kGiB))};
  Need need = need_in_host("b", 8 * kGiB);
  need.since = ago(seconds(4));
  const Error error = error_of(as<Park>(plan(snapshot, need)), snapshot, need, kWall);
  EXPECT_EQ(error.reason, Reason::kNoRoom);
  ASSERT_TRUE(error.extras && error.extras->memory);
  EXPECT_EQ(error.extras->retry_after_seconds, 6.0);
  EXPECT_EQ(error.extras->memory->available_bytes, 5 * kGiB);
  EXPECT_EQ(error.extras->memory->deficit_bytes, 3 * kGiB);
  EXPECT_FALSE(error.extras->holder);
}

TEST(PlanWords, I11_IdleWorkThatDoesNotGiveWayInTimeIsNamed) {
  Snapshot snapshot = large_machine(10);
  snapshot.entries = {in_state(1, "a", in_host(5 * kGiB), EntryState::kLeaving)};
  snapshot.jobs = {{.id = numbered(9),
                    .kind = "context_probe",
                    .model = "a",
                    .instance = numbered(1),
                    .since = ago(seconds(90)),
                    .gives_way_within = seconds(15)}};
  const Need need = need_in_host("b", 8 * kGiB);
  const Error error = error_of(as<Park>(plan(snapshot, need)), snapshot, need, kWall);
  EXPECT_EQ(error.reason, Reason::kNoRoom);
  ASSERT_TRUE(error.extras && error.extras->holder);
  EXPECT_EQ(error.extras->holder->model, "a");
  EXPECT_EQ(error.extras->holder->job, "context_probe");
  EXPECT_EQ(error.extras->holder->since_unix_ms, (kWall - seconds(90)).time_since_epoch().count());
  EXPECT_THAT(error.message, HasSubstr("within 15.0 s"));
}

TEST(PlanWords, I13_WhereTheBudgetIsReallyFullNoJobIsNamed) {
  Snapshot snapshot = large_machine(10);
  snapshot.entries = {busy(1, "a", in_host(5 * kGiB)), busy(2, "c", in_host(kGiB))};
  snapshot.jobs = {{.id = numbered(9), .kind = "context_probe", .instance = numbered(2)}};
  const Need need = need_in_host("b", 8 * kGiB);
  const Error error = error_of(as<Park>(plan(snapshot, need)), snapshot, need, kWall);
  EXPECT_THAT(error.message, ::testing::Not(HasSubstr("probe")));
}

TEST(PlanWords, M14_WhatLiftsARefusalIsSaid) {
  Snapshot snapshot = large_machine(10);
  snapshot.entries = {ready(1, "a", in_host(5 * kGiB))};
  snapshot.entries[0].pinned = true;
  Need need = need_in_host("b", 8 * kGiB);
  Error error = error_of(as<Refuse>(plan(snapshot, need)), snapshot, need, kWall);
  EXPECT_EQ(error.reason, Reason::kNoRoom);
  EXPECT_FALSE(error.extras->retry_after_seconds);
  EXPECT_THAT(error.message, HasSubstr("Pinned models are in the way (a has 5.00 GiB of host)"));
  EXPECT_THAT(error.message, HasSubstr("`berth unpin` makes room"));

  snapshot.entries[0] = in_state(1, "a", in_host(5 * kGiB), EntryState::kStuck);
  error = error_of(as<Refuse>(plan(snapshot, need)), snapshot, need, kWall);
  EXPECT_EQ(error.reason, Reason::kNoRoom);
  EXPECT_THAT(error.message, HasSubstr("do not go are in the way (a)"));

  need = need_of("b", {});
  need.missing_devices = {"CUDA1"};
  error = error_of(as<Refuse>(plan(snapshot, need)), snapshot, need, kWall);
  EXPECT_EQ(error.reason, Reason::kNoRoom);
  EXPECT_EQ(error.message,
            "b is not loaded: its device CUDA1 is not there. `berth doctor` lists the devices that "
            "are.");
  need.missing_devices = {"CUDA1", "CUDA7"};
  error = error_of(as<Refuse>(plan(snapshot, need)), snapshot, need, kWall);
  EXPECT_THAT(error.message, HasSubstr("its devices CUDA1 and CUDA7 are not there"));
}

}  // namespace
}  // namespace berth::core
