#include <gtest/gtest.h>

#include <chrono>

#include "supervisor/cli/error_report.h"
#include "supervisor/cli/format/text.h"
#include "supervisor/cli/progress.h"
#include "tests/unit/cli/test_program.h"

namespace berth::cli {
namespace {

using test::TestProgram;
using namespace std::chrono_literals;

const WallTime kNow{std::chrono::milliseconds(1'800'000'000'000)};

TEST(Report, T1_FailureHasClassSignalLogAndRecord) {
  v1::ErrorDetail detail;
  detail.set_reason("load_failed");
  detail.set_message("model demo could not be loaded");
  v1::Failure& failure = *detail.mutable_failure();
  failure.set_id("0190-record");
  failure.set_class_("crash");
  failure.set_instance_id("0190-instance");
  failure.set_reason("it crashed");
  failure.set_signal("SIGSEGV");
  failure.set_since_unix_ms(1'800'000'000'000 - 12'000);
  failure.add_log_tail("line one\x1b[31m");
  failure.add_log_tail("line two");
  failure.add_command("berth-worker");
  failure.add_command("--model");
  failure.add_command("/a b.gguf");
  const std::string text = to_text(report_refusal(detail, "demo", kNow), false);
  EXPECT_EQ(text,
            "berth: model demo could not be loaded\n"
            "  failure: crash, ended by SIGSEGV, 12 s ago\n"
            "  reason: it crashed\n"
            "  record: 0190-record\n"
            "  command: berth-worker --model '/a b.gguf'\n"
            "  last lines of its log:\n"
            "    | line one[31m\n"
            "    | line two\n"
            "  'berth why demo' explains it, 'berth logs demo' shows the whole log\n");
}

TEST(Report, NothingIsToldTwice) {
  v1::ErrorDetail detail;
  detail.set_reason("load_failed");
  detail.set_message("cut cannot be loaded: The file is cut off.");
  detail.mutable_failure()->set_class_("permanent");
  detail.mutable_failure()->set_reason("The file is cut off.");
  EXPECT_EQ(to_text(report_refusal(detail, "cut", kNow), false),
            "berth: cut cannot be loaded: The file is cut off.\n  failure: permanent\n");
  v1::ErrorDetail unknown;
  unknown.set_reason("unknown_model");
  unknown.set_message("There is no model 'x'. `berth models` lists those that there are.");
  EXPECT_EQ(to_text(report_refusal(unknown, "x", kNow), false),
            "berth: There is no model 'x'. `berth models` lists those that there are.\n");
}

TEST(Report, ALogIsOfferedOnlyWhereAWorkerRan) {
  v1::ErrorDetail detail;
  detail.set_reason("load_failed");
  detail.set_message("model demo could not be loaded");
  detail.mutable_failure()->set_class_("permanent");
  EXPECT_EQ(to_text(report_refusal(detail, "demo", kNow), false),
            "berth: model demo could not be loaded\n"
            "  failure: permanent\n");
}

TEST(Report, TellsWhatStandsBehindARefusal) {
  v1::ErrorDetail detail;
  detail.set_reason("unknown_model");
  detail.set_message("there is no model 'dmeo'");
  detail.add_suggestions("demo");
  detail.set_retry_after_seconds(1.5);
  detail.set_request_id("r-1");
  detail.mutable_holder()->set_model("big");
  detail.mutable_holder()->set_state("loading");
  const std::string text = to_text(report_refusal(detail, "dmeo", kNow), false);
  EXPECT_NE(text.find("nearest names: demo"), std::string::npos) << text;
  EXPECT_NE(text.find("'berth models' lists"), std::string::npos);
  EXPECT_NE(text.find("held by: big (loading)"), std::string::npos);
  EXPECT_NE(text.find("a retry may succeed in 1.5 s"), std::string::npos) << text;
  EXPECT_NE(text.find("request: r-1"), std::string::npos);
  // Not twice.
  detail.set_message("there is no model 'dmeo'; near: demo");
  EXPECT_EQ(to_text(report_refusal(detail, "dmeo", kNow), false).find("nearest names"),
            std::string::npos);
}

TEST(Report, WindowExceededHasBothNumbers) {
  v1::ErrorDetail detail;
  detail.set_reason("window_exceeded");
  detail.set_message("the prompt is too long");
  detail.set_needed(5000);
  detail.set_limit(4096);
  EXPECT_NE(to_text(report_refusal(detail, "demo", kNow), false).find("needed: 5000, limit: 4096"),
            std::string::npos);
}

TEST(Report, UnreachableNamesTheEndpointAndWhatToTry) {
  Endpoint endpoint;
  endpoint.text = "unix:/x.sock";
  endpoint.origin = "BERTH_ENDPOINT";
  endpoint.note = "a note";
  const std::string text =
      to_text(report_unreachable(endpoint, "there is no socket /x.sock"), false);
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "berth: cannot reach berthd at unix:/x.sock: there is no socket /x.sock");
  EXPECT_NE(text.find("is berthd running?"), std::string::npos);
  EXPECT_NE(text.find("BERTH_ENDPOINT"), std::string::npos);
  EXPECT_NE(text.find("a note"), std::string::npos);
}

TEST(Report, CommandLineCanBePasted) {
  EXPECT_EQ(shell_line({"a", "b c", "it's", ""}), "a 'b c' 'it'\\''s' ''");
}

TEST(Report, AgesAreForPeople) {
  EXPECT_EQ(ago(1'800'000'000'000, kNow), "just now");
  EXPECT_EQ(ago(1'800'000'000'000 + 5000, kNow), "just now");
  EXPECT_EQ(ago(1'800'000'000'000 - 250'000, kNow), "4 min 10 s ago");
}

TEST(ProgressLine, HasTextBarPercentAndTime) {
  const ProgressState state{"demo: loading (weights)", 0.43, 12s};
  EXPECT_EQ(progress_line(state, 80),
            "demo: loading (weights) [#############...................]  43 %  12 s left");
  EXPECT_EQ(progress_line({"demo: waiting, next in line", {}, {}}, 80),
            "demo: waiting, next in line");
  EXPECT_EQ(progress_line({"x", 1.5, {}}, 30), "x [####################] 100 %");
}

TEST(ProgressLine, NeverIsWiderThanTheTerminal) {
  for (std::size_t columns = 20; columns < 100; ++columns) {
    for (const double fraction : {0.0, 0.05, 0.5, 1.0}) {
      const ProgressState state{"a-model-with-a-long-name: loading (weights)", fraction, 3661s};
      EXPECT_LE(display_width(progress_line(state, columns)), columns);
    }
  }
}

TEST(Progress, IsOnlyOnATerminal) {
  TestProgram piped;
  {
    Progress progress(piped.environment, false);
    progress.show({"demo: loading", 0.5, {}});
  }
  EXPECT_EQ(piped.err.text, "");

  TestProgram terminal({.out = true, .err = true});
  {
    Progress progress(terminal.environment, false);
    progress.show({"demo: loading", 0.5, {}});
    progress.show({"demo: loading", 0.5, {}});
  }
  EXPECT_EQ(terminal.err.text,
            "\rdemo: loading [################................]  50 %\x1b[K\r\x1b[K");

  terminal.err.text.clear();
  terminal.variables["TERM"] = "dumb";
  Progress dumb(terminal.environment, false);
  dumb.show({"demo: loading", 0.5, {}});
  EXPECT_EQ(terminal.err.text, "");
}

TEST(Progress, VerboseTellsLinesWithoutATerminal) {
  TestProgram piped;
  Progress progress(piped.environment, true);
  progress.show({"demo: loading (weights)", 0.0, {}});
  progress.show({"demo: loading (weights)", 0.05, {}});
  progress.show({"demo: loading (weights)", 0.11, {}});
  progress.show({"demo: loading (warmup)", 0.12, {}});
  EXPECT_EQ(piped.err.text,
            "demo: loading (weights) 0 %\ndemo: loading (weights) 11 %\n"
            "demo: loading (warmup) 12 %\n");
}

}  // namespace
}  // namespace berth::cli
