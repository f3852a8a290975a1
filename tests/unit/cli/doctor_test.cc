#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "supervisor/cli/doctor/disk.h"
#include "supervisor/cli/doctor/kernel.h"
#include "supervisor/cli/doctor/machine.h"
#include "supervisor/cli/doctor/memory.h"
#include "supervisor/cli/doctor/subprocess.h"
#include "supervisor/cli/doctor/worker.h"
#include "supervisor/memory/device_environment.h"
#include "tests/unit/cli/fake_daemon.h"
#include "tests/unit/cli/test_program.h"

namespace berth::cli {
namespace {

using test::TemporaryDirectory;
using test::TestProgram;
using namespace std::chrono_literals;

constexpr std::chrono::seconds kGenerous{60};

std::string all_of(const Checks& checks) {
  std::string text;
  for (const Check& check : checks) {
    text += std::string(finding_name(check.finding)) + " " + check.what + ": " + check.found +
            "; " + check.advice + "\n";
  }
  return text;
}

void make_program(const std::string& path, const std::string& script) {
  std::ofstream(path) << script;
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

TEST(Doctor, M1_AProgramGetsTheEnvironmentThatItIsGiven) {
  const Ran ran =
      run_program({"/bin/sh", "-c", "echo \"$GIVEN ${HOME-none}\""}, kGenerous, {"GIVEN=yes"});
  ASSERT_TRUE(ran.started);
  EXPECT_EQ(ran.output, "yes none\n");
}

// As for berthd itself: drivers' settings are handed on, all else is not, and libllama's private
// libraries are found. No shell could be started with those.
TEST(Doctor, M1_DevicesAreListedInTheEnvironmentThatBerthdGives) {
  const std::vector<std::string> given =
      memory::listing_environment({"GGML_VK_VISIBLE_DEVICES=7", "BERTH_CONFIG=/nowhere"});
  EXPECT_EQ(std::ranges::count(given, "GGML_VK_VISIBLE_DEVICES=7"), 1);
  EXPECT_EQ(std::ranges::count(given, "BERTH_CONFIG=/nowhere"), 0);
  const TemporaryDirectory directory;
  const std::string worker = directory.path() + "/berth-worker";
  make_program(worker, R"(#!/bin/sh
[ "$*" = --devices ] || exit 2
[ -z "$BERTH_CONFIG" ] || exit 1
[ "$GGML_VK_VISIBLE_DEVICES" = 7 ] || exit 2
echo '{"devices":[{"name":"Vulkan0","type":"gpu","total_bytes":8,"free_bytes":4}]}'
)");
  std::vector<std::string> without_libraries = given;
  std::erase_if(without_libraries,
                [](const std::string& one) { return one.starts_with("LD_LIBRARY_PATH="); });
  const auto listed = list_devices(worker, without_libraries);
  ASSERT_TRUE(listed) << listed.error().message;
  ASSERT_EQ(listed->size(), 1U);
  EXPECT_EQ(listed->front().name, "Vulkan0");
}

TEST(Doctor, ReadsMeminfo) {
  const std::string text = "MemTotal:       24611456 kB\nMemAvailableX: 5 kB\nMemAvailable: 7 kB\n";
  EXPECT_EQ(meminfo_bytes(text, "MemTotal"), 24611456ULL * 1024);
  EXPECT_EQ(meminfo_bytes(text, "MemAvailable"), 7ULL * 1024);
  EXPECT_FALSE(meminfo_bytes(text, "MemFree"));
  EXPECT_FALSE(meminfo_bytes("MemFree: x\n", "MemFree"));
}

TEST(Doctor, JudgesTheClock) {
  const WallTime good = std::chrono::sys_days(std::chrono::year(2026) / 6 / 1);
  EXPECT_EQ(judge_clock(good, true).finding, Finding::kOk);
  EXPECT_EQ(judge_clock(good, false).finding, Finding::kWarning);
  EXPECT_EQ(judge_clock(WallTime{}, true).finding, Finding::kError);
}

TEST(Doctor, RunsAProgramAndTakesWhatItSays) {
  const Ran ran = run_program({"/bin/sh", "-c", "echo out; echo err >&2; exit 3"}, kGenerous);
  ASSERT_TRUE(ran.started);
  EXPECT_FALSE(ran.timed_out);
  EXPECT_EQ(WEXITSTATUS(ran.status), 3);
  EXPECT_NE(ran.output.find("out\n"), std::string::npos);
  EXPECT_NE(ran.output.find("err\n"), std::string::npos);
}

TEST(Doctor, KillsAProgramThatDoesNotEnd) {
  // It waits for a reader that never comes.
  const TemporaryDirectory directory;
  const Ran ran = run_program(
      {"/bin/sh", "-c", "mkfifo " + directory.path() + "/f; read x < " + directory.path() + "/f"},
      200ms);
  EXPECT_TRUE(ran.timed_out);
  // Also one that closed its output and lives on.
  const Ran silent =
      run_program({"/bin/sh", "-c", "exec >&- 2>&-; read x < " + directory.path() + "/f"}, 200ms);
  EXPECT_TRUE(silent.timed_out);
}

TEST(Doctor, ProgramThatIsNotThereIsAnError) {
  const Ran ran = run_program({"/nonexistent/program"}, kGenerous);
  EXPECT_FALSE(ran.started);
  EXPECT_EQ(ran.error, "No such file or directory");
}

TEST(Doctor, OutputIsBounded) {
  const Ran ran = run_program({"/bin/sh", "-c", "head -c 100000 /dev/zero"}, kGenerous);
  EXPECT_EQ(ran.output.size(), 16384U);
  EXPECT_EQ(ran.status, 0);
}

TEST(Doctor, ReadsTheLoaderOfAProgram) {
  const auto loader = program_loader("/bin/sh");
  ASSERT_TRUE(loader);
  EXPECT_TRUE(loader->starts_with("/lib")) << *loader;
  EXPECT_FALSE(program_loader("/etc/passwd"));
  EXPECT_FALSE(program_loader("/nonexistent"));
  EXPECT_FALSE(program_loader("/"));
}

TEST(Doctor, FindsAndStartsTheWorkerBesideTheDaemon) {
  const TemporaryDirectory directory;
  TestProgram program;
  program.environment.executable = directory.path() + "/berth";
  program.variables["PATH"] = directory.path() + "/bin";
  EXPECT_NE(all_of(check_worker(program.environment, "")).find("neither beside"),
            std::string::npos);

  std::filesystem::create_directory(directory.path() + "/bin");
  make_program(directory.path() + "/bin/berthd", "#!/bin/sh\n");
  EXPECT_NE(all_of(check_worker(program.environment, "")).find("there is no program"),
            std::string::npos);

  const std::string worker = directory.path() + "/bin/berth-worker";
  make_program(worker, "#!/bin/sh\necho berth-worker 1.2.3\n");
  EXPECT_NE(all_of(check_worker(program.environment, ""))
                .find("ok worker: " + worker + " starts: berth-worker 1.2.3"),
            std::string::npos)
      << all_of(check_worker(program.environment, ""));
  make_program(worker, "#!/bin/sh\necho no libllama >&2\nexit 127\n");
  EXPECT_NE(all_of(check_worker(program.environment, "")).find("exit 127: no libllama"),
            std::string::npos);
  // The one that runs goes before all.
  EXPECT_EQ(check_worker(program.environment, "/nonexistent/berthd").front().found,
            "/nonexistent/berthd");
  // Beside this program goes before PATH.
  make_program(directory.path() + "/berthd", "#!/bin/sh\n");
  EXPECT_EQ(check_worker(program.environment, "").front().found, directory.path() + "/berthd");
}

TEST(Doctor, L26_FindsAndStartsTheTemplateProgramBesideTheWorker) {
  const TemporaryDirectory directory;
  TestProgram program;
  program.environment.executable = directory.path() + "/berth";
  make_program(directory.path() + "/berthd", "#!/bin/sh\n");
  make_program(directory.path() + "/berth-worker", "#!/bin/sh\necho berth-worker 1.2.3\n");
  const std::string templates = directory.path() + "/berth-template";
  const auto last = [&] { return check_worker(program.environment, "").back(); };

  EXPECT_EQ(last().finding, Finding::kError);
  EXPECT_EQ(last().what, "templates");
  EXPECT_EQ(last().found, "there is no program " + templates);
  EXPECT_NE(last().advice.find("beside berth-worker"), std::string::npos);

  make_program(templates, "#!/bin/sh\necho berth-template 1.2.3\n");
  EXPECT_EQ(all_of({last()}), "ok templates: " + templates + " starts: berth-template 1.2.3; \n");

  std::filesystem::permissions(templates, std::filesystem::perms::owner_read);
  EXPECT_EQ(last().finding, Finding::kError);
  EXPECT_EQ(last().found, templates + " may not be executed by this user");

  // It is looked for whatever is wrong with the worker.
  std::filesystem::remove(directory.path() + "/berth-worker");
  EXPECT_EQ(last().what, "templates");
}

TEST(Doctor, LooksAtDirectories) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() + "/open");
  std::filesystem::permissions(directory.path() + "/open", std::filesystem::perms::all);
  std::ofstream(directory.path() + "/file") << "x";
  const std::string text = all_of(check_directories({{"a", directory.path()},
                                                     {"b", directory.path() + "/new/deep"},
                                                     {"c", directory.path() + "/open"},
                                                     {"d", directory.path() + "/file"},
                                                     {"e", ""}}));
  EXPECT_NE(text.find("ok a: " + directory.path() + ", mode 0700"), std::string::npos) << text;
  EXPECT_NE(text.find("it will be made in " + directory.path()), std::string::npos);
  EXPECT_NE(text.find("error c: "), std::string::npos);
  EXPECT_NE(text.find("is no directory"), std::string::npos);
  EXPECT_EQ(text.find(" e: "), std::string::npos);
}

TEST(Doctor, EveryFindingThatIsNotOkSaysWhatToDo) {
  Checks checks = check_kernel();
  for (const Checks& more : {check_limits(), check_machine(system_wall_now())}) {
    checks.insert(checks.end(), more.begin(), more.end());
  }
  for (const Check& check : checks) {
    EXPECT_EQ(check.advice.empty(), check.finding == Finding::kOk) << check.what;
    EXPECT_FALSE(check.found.empty()) << check.what;
  }
}

}  // namespace
}  // namespace berth::cli
