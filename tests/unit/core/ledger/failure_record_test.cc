#include "supervisor/core/ledger/failure_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "tests/unit/core/ledger/records.h"

namespace berth::core {
namespace {

using testing::failure_record;
using ::testing::HasSubstr;

TEST(FailureRecord, L18_ReasonIsBoundedAndHoldsNoPath) {
  FailureRecord record = failure_record(1, "m", FailureClass::kPermanent);
  record.reason = "cannot open /home/eve/my models/x.gguf: " + std::string(2000, 'y');
  record = bounded(record);
  EXPECT_LE(record.reason.size(), kFailureReasonBytes);
  EXPECT_THAT(record.reason, HasSubstr("cannot open <path>"));
  EXPECT_EQ(record, bounded(record));
}

TEST(FailureRecord, L18_AdminPartsAreBounded) {
  FailureRecord record = failure_record(1, "m", FailureClass::kCrash);
  for (int i = 0; i < 100; ++i) {
    record.command.push_back(std::string(1000, 'a'));
    record.log_tail.push_back("line " + std::to_string(i) + " of /var/log/x " +
                              std::string(1000, 'b'));
    record.memory.push_back({"CUDA" + std::to_string(i), 1, 2, 3, 4, 5});
  }
  record.environment = {"A=" + std::string(100'000, 'c')};
  record = bounded(record);
  std::size_t bytes = 0;
  for (const std::string& argument : record.command) bytes += argument.size();
  EXPECT_LE(bytes, kFailureArgumentBytes + 3);
  EXPECT_THAT(record.command.back(), ::testing::EndsWith("…"));
  EXPECT_LE(record.environment.front().size(), kFailureArgumentBytes + 3);
  ASSERT_EQ(record.log_tail.size(), kFailureLogLines);
  EXPECT_THAT(record.log_tail.front(), HasSubstr("line 80 of <path>"));  // the last ones
  EXPECT_LE(record.log_tail.front().size(), 300U);
  EXPECT_EQ(record.memory.size(), kFailureDomains);
}

TEST(FailureRecord, L18_WhatIsWithinItsBoundsStaysAsItIs) {
  FailureRecord record = failure_record(1, "m", FailureClass::kCrash);
  record.command = {"serve", "--file", "/models/x.gguf"};
  record.environment = {"A=/b"};
  EXPECT_EQ(bounded(record), record);
}

TEST(FailureRecord, L21_ClassDecidesWhetherItOutlivesARestart) {
  const auto outlives = [](FailureClass failure_class, std::optional<ExitStatus> exit = {}) {
    FailureRecord record = failure_record(1, "m", failure_class);
    record.exit = exit;
    return outlives_restart(record);
  };
  EXPECT_TRUE(outlives(FailureClass::kPermanent));
  EXPECT_TRUE(outlives(FailureClass::kLaunch));
  EXPECT_TRUE(outlives(FailureClass::kCrash, Signalled{SIGABRT, true}));
  EXPECT_TRUE(outlives(FailureClass::kUnclassified, Exited{1}));
  EXPECT_FALSE(outlives(FailureClass::kResource, Exited{1}));
  EXPECT_FALSE(outlives(FailureClass::kOom, Signalled{SIGKILL}));
  EXPECT_FALSE(outlives(FailureClass::kTimeout));
  EXPECT_FALSE(outlives(FailureClass::kStalled));
  EXPECT_FALSE(outlives(FailureClass::kCrashLoop, Exited{1}));
  EXPECT_FALSE(outlives(FailureClass::kUnclassified, Signalled{SIGSEGV}));
  EXPECT_FALSE(outlives(FailureClass::kUnclassified, UnknownExit{}));
  EXPECT_FALSE(outlives(FailureClass::kUnclassified));
}

TEST(FailureRecord, L22_WayOutNamesTheModel) {
  for (int i = 0; i <= static_cast<int>(FailureClass::kUnclassified); ++i) {
    const auto record = failure_record(1, "demo", static_cast<FailureClass>(i));
    EXPECT_THAT(way_out(record), HasSubstr("berth retry demo"));
  }
}

TEST(FailureRecord, L22_WayOutFitsTheCause) {
  FailureRecord file = failure_record(1, "m", FailureClass::kPermanent);
  file.provenance.program.reset();
  EXPECT_THAT(way_out(file), HasSubstr("other `devices`"));
  file.provenance.devices->clear();
  EXPECT_THAT(way_out(file), HasSubstr("Another file or another version"));
  FailureRecord command = file;
  command.provenance.files->clear();  // as kept before programs were
  for (const auto one : {FailureClass::kPermanent, FailureClass::kLaunch, FailureClass::kCrash}) {
    command.failure_class = one;
    EXPECT_THAT(way_out(command), HasSubstr("A change of its program"));
  }
}

TEST(FailureRecord, L22_WhatLacksToStartAProcessPassesByItself) {
  FailureRecord record = failure_record(1, "m", FailureClass::kResource);
  EXPECT_THAT(way_out(record), HasSubstr("More free memory"));
  record.failing_domain = kLaunchDomain;
  EXPECT_THAT(way_out(record), HasSubstr("passes by itself"));
  EXPECT_THAT(way_out(record), ::testing::Not(HasSubstr("memory")));
  EXPECT_THAT(way_out(record), HasSubstr("berth retry m"));
}

TEST(FailureRecord, L18_SentenceIsThatOfTheFailure) {
  FailureRecord record = failure_record(1, "m", FailureClass::kPermanent);
  record.exit = Exited{3};
  EXPECT_EQ(failure_sentence(record), "exit 3: unknown model architecture: 'x'");
}

TEST(Lift, L23_SaysWhatLiftedIt) {
  Lift lift{
      WallTime(), LiftCause::kProvenance, MovedField{ProvenanceField::kWindow, "4096", "8192"}, {}};
  EXPECT_EQ(to_string(lift), "the served window moved: 4096 -> 8192");
  lift = {WallTime(), LiftCause::kHand, std::nullopt, "eve"};
  EXPECT_EQ(to_string(lift), "by hand: eve");
  for (int i = 0; i <= static_cast<int>(LiftCause::kSuperseded); ++i) {
    const auto cause = static_cast<LiftCause>(i);
    EXPECT_EQ(lift_cause_from_name(lift_cause_name(cause)), cause);
  }
  EXPECT_FALSE(lift_cause_from_name("magic"));
}

}  // namespace
}  // namespace berth::core
