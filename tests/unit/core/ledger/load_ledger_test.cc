#include "supervisor/core/ledger/load_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/core/ledger/records.h"

namespace berth::core {
namespace {

using testing::failure_record;
using testing::ledger_time;
using testing::numbered_id;
using testing::some_provenance;

constexpr std::uint64_t kGiB = 1ULL << 30U;

std::optional<Provenance> unmoved(const std::string& /*model*/) {
  return some_provenance();
}

FailureRecord resource_failure(std::uint64_t number) {
  FailureRecord record = failure_record(number, "m", FailureClass::kResource);
  record.failing_domain = "host";
  record.memory = {{"host", 4 * kGiB, 5 * kGiB, 2 * kGiB, 3 * kGiB, kGiB}};
  return record;
}

// Starts the instance of the record, and gives its failure.
LoadLedger::Recorded fail(LoadLedger& ledger, const FailureRecord& record) {
  ledger.load_started(record.model, record.instance, record.provenance);
  return ledger.record(record);
}

TEST(LoadLedger, L18_AFailureStands) {
  LoadLedger ledger;
  EXPECT_EQ(ledger.standing("m"), nullptr);
  const FailureRecord record = failure_record(1, "m", FailureClass::kPermanent);
  const auto recorded = fail(ledger, record);
  EXPECT_EQ(recorded.record, record);
  EXPECT_FALSE(recorded.before);
  ASSERT_NE(ledger.standing("m"), nullptr);
  EXPECT_EQ(*ledger.standing("m"), record);
  EXPECT_EQ(ledger.standing("other"), nullptr);
  EXPECT_EQ(ledger.all_standing().size(), 1U);
}

TEST(LoadLedger, L18_TheSameRecordTwiceIsOne) {
  LoadLedger ledger;
  const FailureRecord record = failure_record(1, "m", FailureClass::kPermanent);
  fail(ledger, record);
  const auto again = ledger.record(record);
  EXPECT_FALSE(again.before);
  EXPECT_EQ(again.record, record);
  EXPECT_EQ(ledger.all_standing().size(), 1U);
}

TEST(LoadLedger, L18_ANewerFailureTakesThePlaceOfTheOlder) {
  LoadLedger ledger;
  fail(ledger, failure_record(1, "m", FailureClass::kStalled));
  const auto recorded = fail(ledger, failure_record(2, "m", FailureClass::kPermanent));
  ASSERT_TRUE(recorded.before);
  EXPECT_EQ(recorded.before->id, numbered_id(1));
  EXPECT_EQ(recorded.before->lift.cause, LiftCause::kSuperseded);
  EXPECT_EQ(ledger.standing("m")->id, numbered_id(2));
}

TEST(LoadLedger, L19_ProvenanceIsThatOfTheLoadsStart) {
  LoadLedger ledger;
  FailureRecord record = failure_record(1, "m", FailureClass::kPermanent);
  Provenance at_start = some_provenance();
  at_start.window = 512;
  ledger.load_started("m", record.instance, at_start);
  // Whoever made the record looked too late.
  const auto recorded = ledger.record(record);
  EXPECT_EQ(recorded.record.provenance, at_start);
  const auto lifted = ledger.judge("m", some_provenance(), ledger_time(9));
  ASSERT_TRUE(lifted);
  EXPECT_EQ(to_string(lifted->lift), "the served window moved: 512 -> 4096");
}

TEST(LoadLedger, L23_ProvenanceLiftsAndSaysWhichFieldMoved) {
  LoadLedger ledger;
  fail(ledger, failure_record(1, "m", FailureClass::kPermanent));
  EXPECT_FALSE(ledger.judge("m", some_provenance(), ledger_time(5)));
  EXPECT_FALSE(ledger.judge("other", some_provenance(), ledger_time(5)));
  Provenance now = some_provenance();
  now.files->front().modified_ns += 1;
  const auto lifted = ledger.judge("m", now, ledger_time(6));
  ASSERT_TRUE(lifted);
  EXPECT_EQ(lifted->id, numbered_id(1));
  EXPECT_EQ(lifted->model, "m");
  EXPECT_EQ(lifted->lift.when, ledger_time(6));
  EXPECT_EQ(lifted->lift.cause, LiftCause::kProvenance);
  EXPECT_EQ(lifted->lift.moved->field, ProvenanceField::kFiles);
  EXPECT_EQ(ledger.standing("m"), nullptr);
  EXPECT_FALSE(ledger.judge("m", some_provenance(), ledger_time(7)));
}

TEST(LoadLedger, L23_SuccessAndHandLift) {
  LoadLedger ledger;
  const FailureRecord record = failure_record(1, "m", FailureClass::kCrash);
  fail(ledger, record);
  auto lifted = ledger.retry("m", "eve", ledger_time(5));
  ASSERT_TRUE(lifted);
  EXPECT_EQ(to_string(lifted->lift), "by hand: eve");
  EXPECT_FALSE(ledger.retry("m", "eve", ledger_time(5)));
  EXPECT_FALSE(ledger.retry("other", "eve", ledger_time(5)));

  fail(ledger, failure_record(2, "m", FailureClass::kCrash));
  // Only a load of the current instance says anything.
  EXPECT_FALSE(ledger.loaded("m", record.instance, ledger_time(6)));
  EXPECT_NE(ledger.standing("m"), nullptr);
  ledger.load_started("m", numbered_id(77), some_provenance());
  lifted = ledger.loaded("m", numbered_id(77), ledger_time(7));
  ASSERT_TRUE(lifted);
  EXPECT_EQ(lifted->lift.cause, LiftCause::kSuccess);
}

TEST(LoadLedger, L24_LateReportOfAnOlderInstanceDoesNotMark) {
  LoadLedger ledger;
  const FailureRecord late = failure_record(1, "m", FailureClass::kPermanent);
  ledger.load_started("m", late.instance, some_provenance());
  ledger.load_started("m", numbered_id(500), some_provenance());
  const auto recorded = ledger.record(late);
  EXPECT_EQ(ledger.standing("m"), nullptr);
  // The history knows it.
  ASSERT_TRUE(recorded.record.lifted);
  EXPECT_EQ(recorded.record.lifted->cause, LiftCause::kSuperseded);
  // The retry's own report decides.
  FailureRecord own = failure_record(2, "m", FailureClass::kPermanent);
  own.instance = numbered_id(500);
  EXPECT_FALSE(ledger.record(own).record.lifted);
  EXPECT_EQ(ledger.standing("m")->id, own.id);
  // And a report that comes even later leaves that one alone.
  FailureRecord later = failure_record(3, "m", FailureClass::kStalled);
  later.instance = late.instance;
  EXPECT_FALSE(ledger.record(later).before);
  EXPECT_EQ(ledger.standing("m")->id, own.id);
}

TEST(LoadLedger, L24_AReportFromBeforeThisStartMarksWhereNothingNewerIs) {
  LoadLedger ledger;
  EXPECT_FALSE(ledger.record(failure_record(1, "m", FailureClass::kPermanent)).record.lifted);
  EXPECT_NE(ledger.standing("m"), nullptr);
}

TEST(LoadLedger, L21_MemoryLiftsResourceFailures) {
  LoadLedger ledger;
  fail(ledger, resource_failure(1));
  const std::vector<DomainNow> little = {{"host", 2 * kGiB, std::nullopt}};
  const std::vector<DomainNow> enough = {{"host", 3 * kGiB, std::nullopt}};
  EXPECT_FALSE(ledger.judge_memory("m", little, ledger_time(5)));
  const auto lifted = ledger.judge_memory("m", enough, ledger_time(6));
  ASSERT_TRUE(lifted);
  EXPECT_EQ(lifted->lift.cause, LiftCause::kMemory);
  EXPECT_EQ(lifted->lift.detail, "host has 3.00 GiB free, 2.00 GiB then");
  EXPECT_FALSE(ledger.judge_memory("m", enough, ledger_time(7)));
}

TEST(LoadLedger, L21_RestartDropsWhatIsTransient) {
  std::vector<FailureRecord> records;
  for (int i = 0; i <= static_cast<int>(FailureClass::kUnclassified); ++i) {
    const auto failure_class = static_cast<FailureClass>(i);
    records.push_back(failure_record(static_cast<std::uint64_t>(i) + 1,
                                     std::string(failure_class_name(failure_class)),
                                     failure_class));
  }
  FailureRecord plain = failure_record(50, "plain_exit", FailureClass::kUnclassified);
  plain.exit = Exited{1};
  records.push_back(plain);
  FailureRecord signalled = failure_record(51, "signal", FailureClass::kUnclassified);
  signalled.exit = Signalled{SIGKILL};
  records.push_back(signalled);

  LoadLedger ledger;
  const auto lifted = ledger.on_start(records, unmoved, ledger_time(100));
  std::vector<std::string> kept;
  for (const FailureRecord* record : ledger.all_standing()) kept.push_back(record->model);
  EXPECT_EQ(kept, (std::vector<std::string>{"crash", "launch", "permanent", "plain_exit"}));
  EXPECT_EQ(lifted.size(), records.size() - kept.size());
  for (const auto& one : lifted) {
    EXPECT_EQ(one.lift.cause, LiftCause::kRestart);
    EXPECT_EQ(one.lift.when, ledger_time(100));
  }
}

TEST(LoadLedger, L23_RestartJudgesProvenance) {
  LoadLedger ledger;
  const auto lifted = ledger.on_start(
      {failure_record(1, "moved", FailureClass::kPermanent),
       failure_record(2, "same", FailureClass::kPermanent),
       failure_record(3, "gone", FailureClass::kPermanent),
       failure_record(4, "moved_and_transient", FailureClass::kStalled)},
      [](const std::string& model) -> std::optional<Provenance> {
        if (model == "gone") return std::nullopt;
        Provenance now = some_provenance();
        if (model != "same") now.runtime = "b6000";
        return now;
      },
      ledger_time(100));
  ASSERT_EQ(lifted.size(), 2U);
  EXPECT_EQ(to_string(lifted[0].lift), "the worker's runtime moved: b5046 -> b6000");
  EXPECT_EQ(lifted[1].lift.cause, LiftCause::kProvenance);
  EXPECT_EQ(ledger.standing("moved"), nullptr);
  EXPECT_NE(ledger.standing("same"), nullptr);
  EXPECT_NE(ledger.standing("gone"), nullptr);
}

TEST(LoadLedger, L18_RestartLeavesTheNewestOfAModelStanding) {
  LoadLedger ledger;
  const auto lifted = ledger.on_start(
      {failure_record(2, "m", FailureClass::kPermanent),
       failure_record(3, "m", FailureClass::kCrash), failure_record(1, "m", FailureClass::kLaunch)},
      unmoved, ledger_time(100));
  EXPECT_EQ(lifted.size(), 2U);
  EXPECT_EQ(ledger.standing("m")->id, numbered_id(3));
}

TEST(LoadLedger, L18_ForgetsTheOldestFailureBeyondItsBound) {
  LoadLedger ledger(3);
  ledger.load_started("idle", numbered_id(9), some_provenance());
  fail(ledger, failure_record(2, "b", FailureClass::kPermanent));
  fail(ledger, failure_record(1, "a", FailureClass::kPermanent));
  fail(ledger, failure_record(3, "c", FailureClass::kPermanent));
  EXPECT_EQ(ledger.all_standing().size(), 3U);
  fail(ledger, failure_record(4, "d", FailureClass::kPermanent));
  EXPECT_EQ(ledger.standing("a"), nullptr);
  EXPECT_NE(ledger.standing("d"), nullptr);
  EXPECT_EQ(ledger.all_standing().size(), 3U);
}

// One that failed with that program, and ran from second 10 to 20.
FailureRecord program_failure(std::uint64_t number, const Provenance& started) {
  FailureRecord record = failure_record(number, "m", FailureClass::kLaunch);
  record.provenance = started;
  record.started = ledger_time(10);
  record.ended = ledger_time(20);
  return record;
}

Provenance with_program(std::int64_t script_written_s) {
  Provenance provenance = some_provenance();
  provenance.program->back().modified_ns = script_written_s * 1'000'000'000;
  return provenance;
}

TEST(LoadLedger, L19_TheProgramIsThatOfTheLaunch) {
  LoadLedger ledger;
  ledger.load_started("m", numbered_id(7), with_program(1));
  ledger.program_seen("m", numbered_id(6), with_program(3).program);
  ledger.program_seen("m", numbered_id(7), with_program(2).program);
  FailureRecord record = failure_record(1, "m", FailureClass::kLaunch);
  record.instance = numbered_id(7);
  EXPECT_EQ(ledger.record(record).record.provenance, with_program(2));
}

TEST(LoadLedger, L23_AMendedProgramLiftsIt) {
  LoadLedger ledger;
  ledger.record(program_failure(1, with_program(1)));
  EXPECT_FALSE(ledger.judge("m", with_program(1), ledger_time(30)));
  const auto lifted = ledger.judge("m", with_program(25), ledger_time(30));
  ASSERT_TRUE(lifted);
  EXPECT_EQ(lifted->lift.moved->field, ProvenanceField::kProgram);
}

// `serve --log-file serve.log`: it writes that file with each load.
TEST(LoadLedger, L22_WhatAProgramWritesItselfLiftsItsFailureOnce) {
  LoadLedger ledger;
  ledger.record(program_failure(1, with_program(1)));
  EXPECT_TRUE(ledger.judge("m", with_program(15), ledger_time(30))) << "it may be mended";
  ledger.record(program_failure(2, with_program(1)));
  EXPECT_FALSE(ledger.judge("m", with_program(16), ledger_time(30)));
  EXPECT_TRUE(ledger.judge("m", with_program(21), ledger_time(30))) << "somebody else";
}

// The server of its network file system has another clock.
TEST(LoadLedger, L22_WhatAProgramWritesUnderAnotherClockLiftsItsFailureAFewTimes) {
  LoadLedger ledger;
  std::uint64_t number = 1;
  const auto lifted = [&ledger, &number](std::int64_t written_s, std::int64_t seen_s) {
    ledger.record(program_failure(number, with_program(1)));
    ++number;
    return ledger.judge("m", with_program(written_s), ledger_time(seen_s)).has_value();
  };
  for (int load = 0; load < LoadLedger::kMostQuickLifts; ++load) {
    EXPECT_TRUE(lifted(5000 + load, 30)) << "it may be mended";
  }
  EXPECT_FALSE(lifted(5100, 30)) << "it does that every time";
  EXPECT_FALSE(ledger.judge("m", with_program(5100), ledger_time(500))) << "nothing new";
  EXPECT_TRUE(ledger.judge("m", with_program(5400), ledger_time(500))) << "its load is long over";
  EXPECT_TRUE(lifted(5500, 30)) << "which begins anew";
}

TEST(LoadLedger, L23_ARetryByHandAndAnotherProgramTrustTheFilesAgain) {
  LoadLedger ledger;
  const auto use_up = [&ledger] {
    for (std::uint64_t load = 0; load < LoadLedger::kMostQuickLifts; ++load) {
      ledger.record(program_failure(100 + load, with_program(1)));
      ledger.judge("m", with_program(5000), ledger_time(30));
    }
    ledger.record(program_failure(200, with_program(1)));
    EXPECT_FALSE(ledger.judge("m", with_program(5000), ledger_time(30)));
  };
  use_up();
  EXPECT_TRUE(ledger.retry("m", "root", ledger_time(31)));
  ledger.record(program_failure(2, with_program(1)));
  EXPECT_TRUE(ledger.judge("m", with_program(5000), ledger_time(30)));
  ledger.retry("m", "root", ledger_time(31));
  use_up();
  Provenance replaced = with_program(5000);
  replaced.program->front().modified_ns += 1;
  EXPECT_TRUE(ledger.judge("m", replaced, ledger_time(30))) << "the program itself";
  ledger.record(program_failure(3, with_program(1)));
  EXPECT_TRUE(ledger.judge("m", with_program(5000), ledger_time(30)));
}

TEST(LoadLedger, L22_WhatAProgramWroteLiftsNothingAtARestart) {
  LoadLedger ledger;
  const auto now = [](const std::string&) { return with_program(15); };
  EXPECT_TRUE(ledger.on_start({program_failure(1, with_program(1))}, now, ledger_time(30)).empty());
  EXPECT_FALSE(ledger.judge("m", with_program(15), ledger_time(30)));
}

TEST(LoadLedger, L23_AProgramThatWasMendedWhileTheServerWasStoppedLiftsIt) {
  LoadLedger ledger;
  const auto now = [](const std::string&) { return with_program(25); };
  const auto lifted = ledger.on_start({program_failure(1, with_program(1))}, now, ledger_time(30));
  ASSERT_EQ(lifted.size(), 1U);
  EXPECT_EQ(lifted.front().lift.moved->field, ProvenanceField::kProgram);
}

TEST(LoadLedger, L20_AnInterruptedLoadSupersedesNothingThatIsReadLate) {
  LoadLedger ledger;
  ledger.load_started("m", numbered_id(7), some_provenance());
  ledger.load_interrupted("m", numbered_id(7));
  EXPECT_TRUE(
      ledger.on_start({failure_record(1, "m", FailureClass::kPermanent)}, unmoved, ledger_time(100))
          .empty());
  EXPECT_NE(ledger.standing("m"), nullptr);
}

TEST(LoadLedger, L20_WhatIsReadDuringALoadWaitsForItsEnd) {
  const auto restored = [](LoadLedger& ledger) {
    ledger.load_started("m", numbered_id(7), some_provenance());
    EXPECT_TRUE(
        ledger
            .on_start({failure_record(1, "m", FailureClass::kPermanent)}, unmoved, ledger_time(100))
            .empty());
    EXPECT_EQ(ledger.standing("m"), nullptr);
  };
  LoadLedger interrupted;
  restored(interrupted);
  interrupted.load_interrupted("m", numbered_id(6));
  EXPECT_EQ(interrupted.standing("m"), nullptr) << "an older instance";
  interrupted.load_interrupted("m", numbered_id(7));
  ASSERT_NE(interrupted.standing("m"), nullptr);
  EXPECT_EQ(interrupted.standing("m")->id, numbered_id(1));

  LoadLedger loaded;
  restored(loaded);
  const auto lifted = loaded.loaded("m", numbered_id(7), ledger_time(101));
  ASSERT_TRUE(lifted);
  EXPECT_EQ(lifted->lift.cause, LiftCause::kSuccess);

  LoadLedger failed;
  restored(failed);
  FailureRecord record = failure_record(2, "m", FailureClass::kCrash);
  record.instance = numbered_id(7);
  const auto recorded = failed.record(record);
  ASSERT_TRUE(recorded.before);
  EXPECT_EQ(recorded.before->lift.cause, LiftCause::kSuperseded);
  EXPECT_EQ(failed.standing("m")->id, numbered_id(2));
}

}  // namespace
}  // namespace berth::core
