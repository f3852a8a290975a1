#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "common/fd.h"
#include "supervisor/process/instance_mark.h"
#include "supervisor/process/proc.h"
#include "supervisor/process/process_launcher.h"
#include "supervisor/process/shim/report.h"
#include "supervisor/process/subreaper.h"
#include "tests/unit/process/loop.h"
#include "tests/unit/process/temp_dir.h"

namespace berth::process {
namespace {

using ::testing::ElementsAre;
using testing::kGenerous;
using testing::poll_until;
using testing::Recorder;
using testing::run_until;
using testing::shell;
using testing::slurp;
using testing::TempDir;

// Says the pids of a family that is hard to end: deaf to what can be ignored, in sessions of its
// own, orphaned by double forks. Six lines.
constexpr const char* kStubborn =
    "trap '' TERM HUP INT; "
    "(setsid sh -c 'trap \"\" TERM HUP INT; sleep 600 & echo $$ $!; wait' & ) ; "
    "(setsid sh -c 'sleep 600 & echo $$ $!; wait' & ) ; "
    "sleep 600 & echo $$ $!; "
    "while :; do wait; done";
constexpr std::size_t kStubbornCount = 6;

bool ended(const UniqueFd& pidfd) {
  pollfd wait{pidfd.get(), POLLIN, 0};
  return ::poll(&wait, 1, 0) == 1;
}

bool ends(const UniqueFd& pidfd) {
  pollfd wait{pidfd.get(), POLLIN, 0};
  constexpr int kMostMs =
      static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(kGenerous).count());
  return ::poll(&wait, 1, kMostMs) == 1;
}

UniqueFd pidfd_of(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

class ShimTest : public ::testing::Test {
 protected:
  LaunchSpec below_shim(const std::string& script) {
    LaunchSpec spec = shell(script);
    spec.shim = BERTH_SHIM;
    spec.output.reset(::open(output().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR));
    return spec;
  }
  [[nodiscard]] std::string output() const { return dir_.file("out"); }

  std::unique_ptr<ChildProcess> start(LaunchSpec spec) {
    auto child = launcher_.launch(std::move(spec), recorder_);
    if (!child) {
      ADD_FAILURE() << child.error().message;
      return nullptr;
    }
    return *std::move(child);
  }
  bool wait_for_exit() {
    return run_until(io_, [this] { return recorder_.exit.has_value(); });
  }
  // The processes whose pids were written; they live when this returns.
  std::vector<UniqueFd> family(std::size_t count) {
    std::vector<pid_t> pids;
    EXPECT_TRUE(poll_until([&] {
      pids.clear();
      std::istringstream text(slurp(output()));
      for (pid_t pid = 0; text >> pid;) pids.push_back(pid);
      return pids.size() >= count;
    }));
    std::vector<UniqueFd> pidfds;
    for (const pid_t pid : pids) pidfds.push_back(pidfd_of(pid));
    for (const UniqueFd& pidfd : pidfds) EXPECT_TRUE(pidfd && !ended(pidfd));
    return pidfds;
  }

  TempDir dir_;
  boost::asio::io_context io_{1};
  RealLauncher launcher_{io_, {std::chrono::milliseconds(60'000)}};
  Recorder recorder_;
};

TEST_F(ShimTest, L4_EndsAsItsProgramEnded) {
  for (const auto& [script, expected] :
       std::vector<std::pair<std::string, std::string>>{{"exit 7", "exit 7"},
                                                        {"exit 0", "exit 0"},
                                                        {"kill -SEGV $$", "SIGSEGV"},
                                                        {"kill -TERM $$", "SIGTERM"},
                                                        {"kill -KILL $$", "SIGKILL"}}) {
    recorder_.lines.clear();
    recorder_.exit.reset();
    const auto child = start(below_shim(script));
    ASSERT_TRUE(wait_for_exit());
    EXPECT_EQ(core::to_string(*recorder_.exit), expected);
    EXPECT_THAT(recorder_.lines, ElementsAre("listening"));
  }
}

TEST_F(ShimTest, L27_ArgumentsEnvironmentDirectoryAndOutputArrive) {
  LaunchSpec spec = below_shim("echo \"$0\" \"$1\" \"$MARK\"; pwd >&2; cat; ls /proc/self/fd");
  spec.argv.insert(spec.argv.end(), {"zero", "a b\"c"});
  spec.environment.emplace_back("MARK=wert");
  spec.directory = dir_.path();
  const auto child = start(std::move(spec));
  ASSERT_TRUE(wait_for_exit());
  // stdin is empty, and no descriptor of ours is left (3 is the look into the directory).
  EXPECT_EQ(slurp(output()), "zero a b\"c wert\n" + dir_.path() + "\n0\n1\n2\n3\n");
}

// So that what the kernel's log says of the program's number is known to be about this worker.
TEST_F(ShimTest, L9_ItsProgramIsItsOnlyChildWhenTheStartIsTold) {
  LaunchSpec spec = below_shim("echo $$; sleep 600");
  std::vector<pid_t> children;
  spec.started = [&children](pid_t pid) { children = children_of(pid); };
  const auto child = start(std::move(spec));
  ASSERT_NE(child, nullptr);
  ASSERT_EQ(children.size(), 1U);
  ASSERT_TRUE(poll_until([this] { return slurp(output()).ends_with('\n'); }));
  EXPECT_EQ(slurp(output()), std::to_string(children.front()) + "\n");
  child->signal_group(SIGKILL);
  EXPECT_TRUE(wait_for_exit());
}

TEST_F(ShimTest, L27_AProgramThatCannotBeExecutedIsNotLaunched) {
  const auto before = children_of(::getpid());
  LaunchSpec spec = below_shim("true");
  spec.program = "/nonexistent/vllm";
  auto child = launcher_.launch(std::move(spec), recorder_);
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().reason, Reason::kLoadFailed);
  EXPECT_EQ(child.error().message, "execve /nonexistent/vllm: No such file or directory");

  testing::append(dir_.file("script"), "#!/nonexistent/python\n");
  spec = below_shim("true");
  spec.program = dir_.file("script");
  child = launcher_.launch(std::move(spec), recorder_);
  ASSERT_FALSE(child);
  EXPECT_THAT(child.error().message, ::testing::HasSubstr("Permission denied"));
  EXPECT_EQ(children_of(::getpid()), before);
}

TEST_F(ShimTest, L3_TermGoesToTheWholeGroupOfTheProgram) {
  const auto child = start(
      below_shim("(trap 'echo second; exit' TERM; echo up; while :; do sleep 600 & wait; done) & "
                 "second=$!; trap 'wait $second; echo first; exit 9' TERM; echo up; while :; do "
                 "sleep 600 & wait; done"));
  ASSERT_TRUE(poll_until([this] { return slurp(output()) == "up\nup\n"; }));
  child->signal_group(SIGTERM);
  ASSERT_TRUE(wait_for_exit());
  EXPECT_EQ(core::to_string(*recorder_.exit), "exit 9");
  EXPECT_THAT(slurp(output()), ::testing::HasSubstr("second"));
}

TEST_F(ShimTest, L3_KillEndsEveryDescendantBeforeTheExitIsTold) {
  const auto child = start(below_shim(kStubborn));
  const auto pidfds = family(kStubbornCount);
  child->signal_group(SIGTERM);  // does nothing here
  child->signal_group(SIGKILL);
  child->signal_group(SIGKILL);
  ASSERT_TRUE(wait_for_exit());
  for (const UniqueFd& pidfd : pidfds) EXPECT_TRUE(ended(pidfd));
  EXPECT_FALSE(read_stat(child->pid()));
}

TEST_F(ShimTest, L4_EndOfStdinEndsEveryDescendant) {
  const auto child = start(below_shim(kStubborn));
  const auto pidfds = family(kStubbornCount);
  child->close_stdin();
  ASSERT_TRUE(wait_for_exit());
  for (const UniqueFd& pidfd : pidfds) EXPECT_TRUE(ended(pidfd));
}

TEST_F(ShimTest, T66_WhatAProgramLeavesBehindGoesWithIt) {
  const auto child =
      start(below_shim("(setsid sh -c 'trap \"\" TERM HUP; sleep 600 & echo $$ $!; wait' & ) ; "
                       "while [ \"$(wc -w < " +
                       output() + ")\" != 2 ]; do sleep 0.01; done; exit 4"));
  ASSERT_TRUE(wait_for_exit());
  EXPECT_EQ(core::to_string(*recorder_.exit), "exit 4");
  std::istringstream text(slurp(output()));
  int count = 0;
  for (pid_t pid = 0; text >> pid; ++count) EXPECT_FALSE(read_stat(pid)) << pid;
  EXPECT_EQ(count, 2);
}

TEST_F(ShimTest, L4_ManyForksInFlightAreEnded) {
  // Each of fifty goes on making others that live for an instant.
  const auto child = start(
      below_shim("i=0; while [ $i -lt 50 ]; do i=$((i+1)); "
                 "(setsid sh -c 'echo $$; while :; do (true & ) ; sleep 0.01; done' & ) ; done; "
                 "wait; sleep 600"));
  constexpr std::size_t kCount = 50;
  const auto pidfds = family(kCount);
  child->signal_group(SIGKILL);
  ASSERT_TRUE(wait_for_exit());
  for (const UniqueFd& pidfd : pidfds) EXPECT_TRUE(ended(pidfd));
  EXPECT_FALSE(read_stat(child->pid()));
}

TEST_F(ShimTest, L4_NothingIsLeftWhenTheShimIsKilled) {
  auto reaper = Subreaper::start(io_, [this](pid_t pid) { return launcher_.owns(pid); });
  ASSERT_TRUE(reaper);
  const auto child = start(below_shim(kStubborn));
  const auto pidfds = family(kStubbornCount);
  ASSERT_EQ(::kill(child->pid(), SIGKILL), 0);
  ASSERT_TRUE(wait_for_exit());
  EXPECT_TRUE(run_until(io_, [&] {
    return std::all_of(pidfds.begin(), pidfds.end(), ended) && children_of(::getpid()).empty();
  }));
}

TEST_F(ShimTest, L3_AStoppedShimIsContinuedAndKeepsThoseWhoDieSlowly) {
  auto reaper = Subreaper::start(io_, [this](pid_t pid) { return launcher_.owns(pid); });
  ASSERT_TRUE(reaper);
  const auto child = start(below_shim(std::string("i=0; while [ $i -lt 100 ]; do i=$((i+1)); "
                                                  "sleep 600 & done; ") +
                                      kStubborn));
  const auto pidfds = family(kStubbornCount);
  // The first of them is in a session of its own. Its death is not over before its tracer has seen
  // it: until then the shim cannot reap it.
  std::istringstream text(slurp(output()));
  pid_t slow = 0;
  text >> slow;
  if (::ptrace(PTRACE_SEIZE, slow, nullptr, nullptr) != 0) {
    GTEST_SKIP() << "ptrace: " << ::strerror(errno);
  }
  ASSERT_EQ(::kill(child->pid(), SIGSTOP), 0);
  ASSERT_TRUE(poll_until([&] { return read_stat(child->pid())->state == 'T'; }));
  child->signal_group(SIGKILL);
  EXPECT_TRUE(run_until(
      io_, [&] { return recorder_.exit || std::all_of(pidfds.begin(), pidfds.end(), ended); }));
  // Nothing happens any more, for longer than anybody may be tempted to wait for.
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
  run_until(io_, [&] { return recorder_.exit || std::chrono::steady_clock::now() > until; });
  ASSERT_FALSE(recorder_.exit);
  const auto stat = read_stat(child->pid());
  EXPECT_TRUE(stat && stat->state != 'Z');
  siginfo_t info{};
  EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(slow), &info, WEXITED), 0);
  ASSERT_TRUE(wait_for_exit());
  EXPECT_FALSE(read_stat(slow));
  EXPECT_EQ(core::to_string(*recorder_.exit), "SIGKILL");
}

TEST_F(ShimTest, L3_AStoppedShimPassesOnTheSignalThatIsSentToIt) {
  const auto child = start(
      below_shim("trap 'echo told; exit 9' TERM; echo up; while :; do sleep 600 & wait; done"));
  ASSERT_TRUE(poll_until([this] { return slurp(output()) == "up\n"; }));
  ASSERT_EQ(::kill(child->pid(), SIGSTOP), 0);
  child->signal_group(SIGTERM);
  ASSERT_TRUE(wait_for_exit());
  EXPECT_EQ(core::to_string(*recorder_.exit), "exit 9");
}

TEST_F(ShimTest, L4_AStoppedShimEndsItsFamilyWhenItsOwnerIsGone) {
  auto child = start(below_shim(kStubborn));
  const auto pidfds = family(kStubbornCount);
  const pid_t shim = child->pid();
  ASSERT_EQ(::kill(shim, SIGSTOP), 0);
  child.reset();
  ASSERT_TRUE(run_until(io_, [&] { return !launcher_.owns(shim); }));
  for (const UniqueFd& pidfd : pidfds) EXPECT_TRUE(ended(pidfd));
}

// Four that stop the shim whenever it runs.
constexpr const char* kStopsItsShim =
    "while [ ! -e \"$0\" ]; do :; done; "
    "for i in 1 2 3; do while :; do kill -STOP $PPID; done & echo $!; done; "
    "echo $$; while :; do kill -STOP $PPID; done";
constexpr std::size_t kStoppers = 4;

TEST_F(ShimTest, L3_ACommandThatKeepsStoppingItsShimIsKilled) {
  RealLauncher hasty(io_, {.exec_wait = std::chrono::milliseconds(60'000),
                           .shim_wait = std::chrono::milliseconds(0)});
  LaunchSpec spec = below_shim(kStopsItsShim);
  // Not before the launcher knows that it runs.
  spec.argv.push_back(dir_.file("go"));
  const std::string owner = *mark_owner(dir_.path());
  spec.environment.push_back(instance_mark("018f0000-0000-7000-8000-000000000001", owner));
  auto child = hasty.launch(std::move(spec), recorder_);
  ASSERT_TRUE(child) << child.error().message;
  testing::append(dir_.file("go"), "");
  const auto pidfds = family(kStoppers);
  ASSERT_TRUE(poll_until([&child] { return read_stat((*child)->pid())->state == 'T'; }));
  (*child)->signal_group(SIGKILL);
  ASSERT_TRUE(wait_for_exit());
  for (const UniqueFd& pidfd : pidfds) EXPECT_TRUE(ended(pidfd));
}

// In the place of one that is stopped whenever it would kill.
constexpr const char* kShimThatKillsNobody =
    "#!/bin/sh\n"
    "shift; program=$1; shift 2; echo started >&3; echo listening >&3\n"
    "\"$program\" \"$@\"; exit 3\n";

TEST_F(ShimTest, L3_WhatTheShimDoesNotKillIsKilledByItsMark) {
  RealLauncher hasty(io_, {.exec_wait = std::chrono::milliseconds(60'000),
                           .shim_wait = std::chrono::milliseconds(0)});
  testing::append(dir_.file("shim"), kShimThatKillsNobody);
  ASSERT_EQ(::chmod(dir_.file("shim").c_str(), S_IRWXU), 0);
  LaunchSpec spec = below_shim("echo $$; while :; do sleep 600 & wait; done");
  spec.shim = dir_.file("shim");
  const std::string owner = *mark_owner(dir_.path());
  spec.environment.push_back(instance_mark("018f0000-0000-7000-8000-000000000002", owner));
  auto child = hasty.launch(std::move(spec), recorder_);
  ASSERT_TRUE(child) << child.error().message;
  const auto pidfds = family(1);
  (*child)->signal_group(SIGKILL);
  ASSERT_TRUE(wait_for_exit());
  EXPECT_EQ(core::to_string(*recorder_.exit), "exit 3") << "it was spared";
  for (const UniqueFd& pidfd : pidfds) EXPECT_TRUE(ended(pidfd));
}

TEST_F(ShimTest, L4_NothingIsLeftWhenTheSupervisorIsKilled) {
  // The helper is the supervisor, started without a shim of its own.
  LaunchSpec spec = below_shim("");
  spec.shim.clear();
  spec.program = BERTH_PROCESS_HELPER;
  spec.argv = {"helper", BERTH_SHIM, kStubborn, output()};
  const auto helper = start(std::move(spec));
  // The helper says the shim's pid.
  const auto pidfds = family(kStubbornCount + 1);
  ASSERT_EQ(::kill(helper->pid(), SIGKILL), 0);
  ASSERT_TRUE(wait_for_exit());
  for (const UniqueFd& pidfd : pidfds) EXPECT_TRUE(ends(pidfd));
}

TEST(ShimReport, OnlyItsOwnLinesAreRead) {
  EXPECT_EQ(shim::error_of("failed 2"), 2);
  for (const char* const line : {"", "failed", "failed ", "failed x", "failed 2 ", "failed 0",
                                 "failed -2", "started", "failed 99999999999999"}) {
    EXPECT_EQ(shim::error_of(line), std::nullopt) << line;
  }
  EXPECT_EQ(shim::failed_line(2), "failed 2\n");
}

}  // namespace
}  // namespace berth::process
