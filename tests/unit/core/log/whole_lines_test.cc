// Lines, holds and bounds of the whole parser.

#include <gtest/gtest.h>

#include "supervisor/core/log/line_cleaner.h"
#include "tests/unit/core/log/log_run.h"

namespace berth::core {
namespace {

using test::kPause;
using test::LogRun;
using test::said;
using namespace std::chrono_literals;

const std::string kFailure =
    "Traceback (most recent call last):\n"
    "  File \"/srv/app/loader.py\", line 88, in load\n"
    "ValueError: bad shard\n";

TEST(LogParser, L12_ALineWithoutItsEndDoesNotCount) {
  LogRun run;
  run.write(kFailure.substr(0, kFailure.size() - 1));
  run.wait(kPause);
  run.end();
  EXPECT_EQ(run.verdict(), std::nullopt);
  EXPECT_EQ(said("free(): invalid pointer"), "");
  EXPECT_EQ(said("free(): invalid pointer\n"), "crash free(): invalid pointer");
}

TEST(LogParser, L12_ALineMayComeInPieces) {
  LogRun run;
  run.write("free(): inv");
  run.wait(kPause);
  EXPECT_EQ(run.verdict(), std::nullopt);
  run.write("alid pointer");
  run.wait(kPause);
  EXPECT_EQ(run.verdict(), std::nullopt);
  run.write("\n");
  ASSERT_TRUE(run.verdict().has_value()) << "a native line is not held";
  EXPECT_EQ(run.verdict()->reason, "free(): invalid pointer");
  EXPECT_EQ(run.verdict()->line, 1U);
}

TEST(LogParser, L12_CarriageReturnsEndNoLine) {
  EXPECT_EQ(said("free(): invalid pointer\r10%\r20%\n"), "");
  EXPECT_EQ(said("10%\r20%\rfree(): invalid pointer\r\n"), "crash free(): invalid pointer");
  EXPECT_EQ(said("free(): invalid pointer\v\f\x85\n"), "crash free(): invalid pointer");
}

TEST(LogParser, L11_ALineOfTheGreatestLengthIsLookedAt) {
  const std::string message = "terminate called without ";
  const std::string longest = message + std::string(kLongestLogLine - message.size(), 'x');
  EXPECT_EQ(said(longest + "\n"), "crash " + longest.substr(0, 300));
  EXPECT_EQ(said(longest + "x\n"), "");
  LogRun run;
  for (const char c : longest) run.write({&c, 1});
  run.write("\n");
  EXPECT_TRUE(run.verdict().has_value());
}

TEST(LogParser, L11_ALongerLineResets) {
  const std::string noise(3 * kLongestLogLine, 'x');
  const std::string frames = kFailure.substr(0, kFailure.find("ValueError"));
  EXPECT_EQ(said(frames + "  " + noise + "\nValueError: bad shard\n"), "");
  EXPECT_EQ(said(noise + "\n" + kFailure), "permanent ValueError: bad shard");
  EXPECT_EQ(said(kFailure + noise + "\n"), "permanent ValueError: bad shard");
  LogRun run;
  for (int i = 0; i < 100; ++i) run.write(noise);
  run.write("\r");
  run.write(kFailure);
  run.wait(kPause);
  EXPECT_EQ(run.verdict(), std::nullopt) << "the header is part of the long line";
}

TEST(LogParser, L13_ATerminalLineSpeaksWhenTheLogWasQuiet) {
  LogRun run;
  EXPECT_EQ(run.parser().hold_until(), std::nullopt);
  run.write(kFailure);
  EXPECT_EQ(run.verdict(), std::nullopt);
  EXPECT_EQ(run.parser().hold_until(), run.now() + 100ms);
  run.wait(99ms);
  EXPECT_EQ(run.verdict(), std::nullopt);
  run.wait(1ms);
  ASSERT_TRUE(run.verdict().has_value());
  EXPECT_EQ(run.verdict()->failure_class, FailureClass::kPermanent);
  EXPECT_EQ(run.verdict()->exception, "ValueError");
  EXPECT_EQ(run.verdict()->line, 3U);
  EXPECT_EQ(run.parser().hold_until(), std::nullopt);
}

TEST(LogParser, L13_BytesOfTheNextLineKeepItWaiting) {
  LogRun run;
  run.write(kFailure);
  run.wait(60ms);
  run.write("\nDuring handling of the above exception, ");
  run.wait(60ms);
  EXPECT_EQ(run.verdict(), std::nullopt);
  run.write("another exception occurred:\n");
  run.wait(kPause);
  run.end();
  EXPECT_EQ(run.verdict(), std::nullopt) << "it was only a cause";
}

TEST(LogParser, L13_AProgressBarDoesNotKeepItForEver) {
  LogRun run;
  run.write(kFailure);
  for (int i = 0; i < 19; ++i) {
    run.wait(50ms);
    run.write("\r" + std::to_string(i) + "%");
    EXPECT_EQ(run.verdict(), std::nullopt);
  }
  run.wait(50ms);
  ASSERT_TRUE(run.verdict().has_value());
  EXPECT_EQ(run.verdict()->reason, "ValueError: bad shard");
}

TEST(LogParser, L13_ATerminalLineSpeaksAtTheNextLineAndAtTheEnd) {
  LogRun run;
  run.write(kFailure);
  run.write("\n\n  \n");
  EXPECT_EQ(run.verdict(), std::nullopt) << "blank lines continue the hold";
  run.write("INFO: next\n");
  EXPECT_TRUE(run.verdict().has_value());
  LogRun ended;
  ended.write(kFailure);
  ended.end();
  EXPECT_TRUE(ended.verdict().has_value());
  LogRun with_rest;
  with_rest.write(kFailure + "During hand");
  with_rest.end();
  EXPECT_TRUE(with_rest.verdict().has_value());
}

TEST(LogParser, L13_AChainThatPausedTooLongIsOver) {
  LogRun run;
  run.write(kFailure);
  run.wait(kPause);
  ASSERT_TRUE(run.verdict().has_value());
  run.write("\nDuring handling of the above exception, another exception occurred:\n\n");
  run.write("Traceback (most recent call last):\n  File\nRuntimeError: x\n");
  run.end();
  EXPECT_EQ(run.verdict()->reason, "ValueError: bad shard");
  EXPECT_EQ(run.verdicts, 1);
}

TEST(LogParser, L12_TheFirstVerdictStands) {
  LogRun run;
  run.write("free(): invalid pointer\n" + kFailure + "Aborted (core dumped)\n");
  run.wait(kPause);
  run.write("Aborted (core dumped)\n" + kFailure);
  run.wait(kPause);
  run.end();
  EXPECT_EQ(run.verdicts, 1);
  EXPECT_EQ(run.verdict()->reason, "free(): invalid pointer");
  EXPECT_EQ(run.parser().hold_until(), std::nullopt);
}

TEST(LogParser, L12_ANativeLineAfterATerminalLineComesSecond) {
  EXPECT_EQ(said(kFailure + "free(): invalid pointer\n"), "permanent ValueError: bad shard");
}

}  // namespace
}  // namespace berth::core
