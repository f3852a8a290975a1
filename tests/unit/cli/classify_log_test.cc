#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/cli/fake_daemon.h"
#include "tests/unit/cli/test_program.h"

namespace berth::cli {
namespace {

using test::TemporaryDirectory;
using test::TestProgram;

constexpr const char* kLog =
    "[INFO] loading\n"
    "Traceback (most recent call last):\n"
    "  File \"/srv/app/loader.py\", line 88, in load\n"
    "ValueError: bad shard in /srv/My Models/k 4.gguf\n";

TEST(ClassifyLog, PrintsTheVerdictOfAFile) {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/worker.log";
  std::ofstream(file) << kLog;
  TestProgram program;
  EXPECT_EQ(program.run({"classify-log", file}), ExitCode::kOk);
  EXPECT_EQ(program.out.text,
            "class:     permanent\n"
            "exception: ValueError\n"
            "reason:    ValueError: bad shard in <path>\n"
            "line:      4\n");
  EXPECT_EQ(program.err.text, "");
}

TEST(ClassifyLog, ReadsTheStandardInput) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"classify-log"}, {"classify-log", "-"}}) {
    TestProgram program;
    program.set_input("[INFO] loading\nfree(): invalid pointer\n");
    EXPECT_EQ(program.run(arguments), ExitCode::kOk);
    EXPECT_EQ(program.out.text,
              "class:     crash\nreason:    free(): invalid pointer\nline:      2\n");
  }
}

TEST(ClassifyLog, NoVerdictIsAnAnswer) {
  TestProgram program;
  program.set_input("[INFO] loading\nfree(): invalid poin");
  EXPECT_EQ(program.run({"classify-log"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text, "no verdict\n");
  program.set_input("");
  EXPECT_EQ(program.run({"classify-log", "--json"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text, "{\n  \"verdict\": null\n}\n");
}

TEST(ClassifyLog, PrintsJson) {
  TestProgram program;
  program.set_input(kLog);
  EXPECT_EQ(program.run({"classify-log", "--json"}), ExitCode::kOk);
  EXPECT_EQ(
      program.out.text,
      "{\n  \"verdict\": {\n    \"class\": \"permanent\",\n    \"exception\": \"ValueError\",\n"
      "    \"reason\": \"ValueError: bad shard in <path>\",\n    \"line\": 4\n  }\n}\n");
  program.set_input("GGML_ASSERT(x) failed\n");
  EXPECT_EQ(program.run({"classify-log", "--json"}), ExitCode::kOk);
  EXPECT_NE(program.out.text.find("\"exception\": null"), std::string::npos);
}

TEST(ClassifyLog, L14_TakesOtherFatalNames) {
  TestProgram program;
  program.set_input(kLog);
  EXPECT_EQ(program.run({"classify-log", "--fatal", "RuntimeError", "--fatal", "KeyError"}),
            ExitCode::kOk);
  EXPECT_EQ(program.out.text, "no verdict\n");
  program.set_input(kLog);
  EXPECT_EQ(program.run({"classify-log", "--fatal", "KeyError", "--fatal", "ValueError", "-"}),
            ExitCode::kOk);
  EXPECT_NE(program.out.text.find("exception: ValueError"), std::string::npos);
}

TEST(ClassifyLog, SaysWhatCannotBeRead) {
  const TemporaryDirectory directory;
  TestProgram program;
  EXPECT_EQ(program.run({"classify-log", directory.path() + "/absent"}), ExitCode::kNo);
  EXPECT_EQ(program.err.text,
            "berth: cannot read " + directory.path() + "/absent: No such file or directory\n");
  EXPECT_EQ(program.run({"classify-log", directory.path()}), ExitCode::kNo);
  EXPECT_NE(program.err.text.find("Is a directory"), std::string::npos);
}

}  // namespace
}  // namespace berth::cli
