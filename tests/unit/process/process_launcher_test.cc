#include "supervisor/process/process_launcher.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "supervisor/process/launch_error.h"
#include "supervisor/process/proc.h"
#include "tests/unit/process/loop.h"
#include "tests/unit/process/temp_dir.h"

namespace berth::process {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::poll_until;
using testing::Recorder;
using testing::run_until;
using testing::shell;
using testing::slurp;
using testing::TempDir;

// Every test runs with both ways to start a process.
class LauncherTest : public ::testing::TestWithParam<bool> {
 protected:
  UniqueFd output_file() {
    return UniqueFd(
        ::open(output_path().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR));
  }
  std::string output_path() { return dir_.file("out"); }

  // Runs a script to its end and gives what it wrote.
  std::string output_of(LaunchSpec spec) {
    spec.output = output_file();
    auto child = launcher_.launch(std::move(spec), recorder_);
    if (!child) return child.error().message;
    EXPECT_TRUE(run_until(io_, [this] { return recorder_.exit.has_value(); }));
    return slurp(output_path());
  }

  TempDir dir_;
  boost::asio::io_context io_{1};
  RealLauncher launcher_{io_, {std::chrono::milliseconds(60'000), GetParam()}};
  Recorder recorder_;
};
INSTANTIATE_TEST_SUITE_P(Clone, LauncherTest, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "Clone3" : "Fork"; });

TEST_P(LauncherTest, ReportsExitStatusOnce) {
  auto child = launcher_.launch(shell("exit 7"), recorder_);
  ASSERT_TRUE(child) << child.error().message;
  EXPECT_TRUE(launcher_.owns((*child)->pid()));
  ASSERT_TRUE(run_until(io_, [this] { return recorder_.exit.has_value(); }));
  EXPECT_EQ(*recorder_.exit, core::ExitStatus(core::Exited{7}));
  EXPECT_FALSE(launcher_.owns((*child)->pid()));
  io_.restart();
  io_.run();  // nothing is left to wait for
  EXPECT_EQ(recorder_.exits, 1);
}

TEST_P(LauncherTest, T7_DeathBySignalIsReportedWithItsName) {
  auto child = launcher_.launch(shell("kill -BUS $$"), recorder_);
  ASSERT_TRUE(child);
  ASSERT_TRUE(run_until(io_, [this] { return recorder_.exit.has_value(); }));
  // No core although the default action of SIGBUS is one: RLIMIT_CORE is 0.
  EXPECT_EQ(core::to_string(*recorder_.exit), "SIGBUS");
}

TEST_P(LauncherTest, FailedExecuteNamesStepAndCause) {
  LaunchSpec spec = shell("true");
  spec.program = "/nonexistent/berth-worker";
  const auto child = launcher_.launch(std::move(spec), recorder_);
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().reason, Reason::kLoadFailed);
  EXPECT_EQ(child.error().message, "execve /nonexistent/berth-worker: No such file or directory");
  EXPECT_TRUE(children_of(::getpid()).empty());
}

TEST_P(LauncherTest, FailedDirectoryNamesStepAndCause) {
  LaunchSpec spec = shell("true");
  spec.directory = "/nonexistent";
  const auto child = launcher_.launch(std::move(spec), recorder_);
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().message, "chdir /nonexistent: No such file or directory");
}

// The class that an error carries, or "".
std::string class_of(const Error& error) {
  if (!error.extras || !error.extras->failure) return "";
  return error.extras->failure->failure_class;
}

TEST_P(LauncherTest, L21_AFaultOfTheProgramCarriesNoOtherClassThanLaunch) {
  for (const char* const program : {"/nonexistent/vllm", "/dev/null/vllm", "/tmp"}) {
    LaunchSpec spec = shell("true");
    spec.program = program;
    const auto child = launcher_.launch(std::move(spec), recorder_);
    ASSERT_FALSE(child);
    EXPECT_EQ(class_of(child.error()), "") << child.error().message;
  }
}

TEST_P(LauncherTest, L21_TooFewDescriptorsIsAResourceFailure) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  // Each limit ends the launch at another step, until there are enough.
  constexpr rlim_t kFirst = 12;
  constexpr rlim_t kMost = 100;
  int failures = 0;
  bool launched = false;
  for (rlim_t limit = kFirst; limit < kMost && !launched; ++limit) {
    Recorder recorder;
    const rlimit low{limit, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
    auto child = launcher_.launch(shell("exit 0"), recorder);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    launched = child.has_value();
    if (launched) {
      ASSERT_TRUE(run_until(io_, [&] { return recorder.exit.has_value(); }));
      break;
    }
    ++failures;
    EXPECT_EQ(child.error().reason, Reason::kLoadFailed);
    EXPECT_EQ(class_of(child.error()), "resource") << child.error().message;
  }
  EXPECT_TRUE(launched);
  EXPECT_GT(failures, 0);
  EXPECT_TRUE(children_of(::getpid()).empty());
}

TEST_P(LauncherTest, L21_AnExecuteThatTakesTooLongIsATimeout) {
  RealLauncher hasty(io_, {std::chrono::milliseconds(0), GetParam()});
  const auto child = hasty.launch(shell("true"), recorder_);
  ASSERT_FALSE(child);
  EXPECT_EQ(class_of(child.error()), "timeout") << child.error().message;
  EXPECT_TRUE(children_of(::getpid()).empty());
}

TEST_P(LauncherTest, L21_AShortageOfTheShimIsAResourceFailure) {
  // In the place of the shim stands one that has run out of descriptors.
  for (const auto& [line, expected] :
       {std::pair<std::string, std::string>{"failed 24", "resource"}, {"failed 2", ""}}) {
    const std::string shim = dir_.file("shim");
    testing::append(shim, "#!/bin/sh\necho " + line + " >&3\n");
    ASSERT_EQ(::chmod(shim.c_str(), S_IRWXU), 0);
    LaunchSpec spec = shell("true");
    spec.shim = shim;
    const auto child = launcher_.launch(std::move(spec), recorder_);
    ASSERT_FALSE(child);
    EXPECT_EQ(class_of(child.error()), expected) << child.error().message;
    EXPECT_THAT(child.error().message, HasSubstr("execve /bin/sh: "));
    ASSERT_EQ(::unlink(shim.c_str()), 0);
  }
}

TEST_P(LauncherTest, RelativeProgramIsRefused) {
  LaunchSpec spec = shell("true");
  spec.program = "sh";
  const auto child = launcher_.launch(std::move(spec), recorder_);
  ASSERT_FALSE(child);
  EXPECT_THAT(child.error().message, HasSubstr("not absolute"));
}

TEST_P(LauncherTest, RefusedOffTheMainThread) {
  std::thread other([this] {
    const auto child = launcher_.launch(shell("true"), recorder_);
    ASSERT_FALSE(child);
    EXPECT_EQ(child.error().reason, Reason::kInternal);
  });
  other.join();
}

TEST_P(LauncherTest, BothStreamsGoToTheOutputInOrder) {
  EXPECT_EQ(output_of(shell("echo one; echo two >&2; echo three")), "one\ntwo\nthree\n");
}

TEST_P(LauncherTest, ArgumentsEnvironmentAndDirectoryArrive) {
  LaunchSpec spec = shell("echo \"$0\" \"$1\"; echo \"$MARK\"; echo \"${HOME-none}\"; pwd");
  spec.argv.insert(spec.argv.end(), {"zero", "a b\"c"});
  spec.environment.emplace_back("MARK=wert");
  spec.directory = dir_.path();
  EXPECT_EQ(output_of(std::move(spec)), "zero a b\"c\nwert\nnone\n" + dir_.path() + "\n");
}

TEST_P(LauncherTest, ChildHasOnlyItsFourDescriptors) {
  // Descriptors of the parent without CLOEXEC, low and high.
  const UniqueFd low(::open("/dev/null", O_RDONLY));
  const UniqueFd high(::fcntl(low.get(), F_DUPFD, 200));
  // The shell opens one more for the script's own redirection, therefore a plain ls: 4 is its
  // own look into the directory.
  LaunchSpec spec;
  spec.program = "/bin/ls";
  spec.argv = {"ls", "/proc/self/fd"};
  EXPECT_EQ(output_of(std::move(spec)), "0\n1\n2\n3\n4\n");
}

TEST_P(LauncherTest, L4_OwnGroupDeathSignalPrivilegesAndCoreLimit) {
  auto child = launcher_.launch(shell("read line"), recorder_);
  ASSERT_TRUE(child);
  const pid_t pid = (*child)->pid();
  EXPECT_EQ(::getpgid(pid), pid);
  const std::string status = slurp("/proc/" + std::to_string(pid) + "/status");
  EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1"));
  EXPECT_THAT(slurp("/proc/" + std::to_string(pid) + "/limits"),
              ::testing::ContainsRegex("Max core file size +0 +0 "));
  (*child)->close_stdin();
  ASSERT_TRUE(run_until(io_, [this] { return recorder_.exit.has_value(); }));
}

TEST_P(LauncherTest, SignalsAreDefaultAndUnblocked) {
  struct sigaction ignore {};
  struct sigaction before {};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGPIPE, &ignore, &before), 0);
  sigset_t blocked{};
  sigset_t mask_before{};
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &blocked, &mask_before), 0);

  LaunchSpec spec;
  spec.program = "/bin/grep";
  spec.argv = {"grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"};
  EXPECT_EQ(output_of(std::move(spec)), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");

  sigset_t mask_after{};
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &mask_before, &mask_after), 0);
  EXPECT_EQ(::sigismember(&mask_after, SIGTERM), 1);
  EXPECT_EQ(::sigismember(&mask_after, SIGINT), 0);
  ASSERT_EQ(::sigaction(SIGPIPE, &before, nullptr), 0);
}

TEST_P(LauncherTest, PrioritiesArrive) {
  LaunchSpec spec = shell("cat /proc/self/oom_score_adj; nice");
  spec.oom_score_adj = 500;
  spec.nice = 5;
  const int own_nice = ::nice(0);
  EXPECT_EQ(output_of(std::move(spec)), "500\n" + std::to_string(own_nice + 5) + "\n");
}

TEST_P(LauncherTest, L4_EndOfStdinTellsTheChildToGo) {
  auto child = launcher_.launch(shell("cat >/dev/null; exit 3"), recorder_);
  ASSERT_TRUE(child);
  (*child)->close_stdin();
  (*child)->close_stdin();  // a second time does nothing
  ASSERT_TRUE(run_until(io_, [this] { return recorder_.exit.has_value(); }));
  EXPECT_EQ(*recorder_.exit, core::ExitStatus(core::Exited{3}));
}

TEST_P(LauncherTest, NotifyLinesComeBeforeTheExit) {
  recorder_.after_exit = [this] { EXPECT_EQ(recorder_.lines.size(), 2U); };
  auto child =
      launcher_.launch(shell("echo listening >&3; echo second >&3; printf half >&3"), recorder_);
  ASSERT_TRUE(child);
  ASSERT_TRUE(run_until(io_, [this] { return recorder_.exit.has_value(); }));
  EXPECT_THAT(recorder_.lines, ElementsAre("listening", "second"));
}

TEST_P(LauncherTest, NotifyIsBounded) {
  // A line of 256 bytes passes, one of 257 does not; then a flood.
  auto child = launcher_.launch(shell("printf '%0256d\\n' 1 >&3; printf '%0257d\\n' 1 >&3; "
                                      "yes | head -n 100000 >&3; exit 0"),
                                recorder_);
  ASSERT_TRUE(child);
  ASSERT_TRUE(run_until(io_, [this] { return recorder_.exit.has_value(); }));
  ASSERT_GE(recorder_.lines.size(), 2U);
  EXPECT_EQ(recorder_.lines[0].size(), 256U);
  EXPECT_EQ(recorder_.lines[1], "y");
  EXPECT_LE(recorder_.lines.size(), 1024U);
}

TEST_P(LauncherTest, SignalGoesToTheWholeGroup) {
  auto child = launcher_.launch(
      shell("sleep 600 & echo $! >&3; trap 'exit 9' TERM; while :; do sleep 600 & wait; done"),
      recorder_);
  ASSERT_TRUE(child);
  ASSERT_TRUE(run_until(io_, [this] { return !recorder_.lines.empty(); }));
  const pid_t grandchild = std::stoi(recorder_.lines.front());
  (*child)->signal_group(SIGTERM);
  ASSERT_TRUE(run_until(io_, [this] { return recorder_.exit.has_value(); }));
  EXPECT_TRUE(poll_until([grandchild] {
    const auto stat = read_stat(grandchild);
    return !stat || stat->state == 'Z';
  }));
  (*child)->signal_group(SIGTERM);  // reaped: goes nowhere
}

TEST_P(LauncherTest, L4_StrayGrandchildIsKilledWhenTheChildExits) {
  auto child =
      launcher_.launch(shell("(trap '' TERM HUP; sleep 600) & echo $! >&3; exit 0"), recorder_);
  ASSERT_TRUE(child);
  ASSERT_TRUE(run_until(io_, [this] { return recorder_.exit.has_value(); }));
  ASSERT_EQ(recorder_.lines.size(), 1U);
  const pid_t grandchild = std::stoi(recorder_.lines.front());
  EXPECT_TRUE(poll_until([grandchild] {
    const auto stat = read_stat(grandchild);
    return !stat || stat->state == 'Z';
  }));
}

TEST_P(LauncherTest, DestroyingALiveChildKillsIt) {
  auto child = launcher_.launch(shell("sleep 600"), recorder_);
  ASSERT_TRUE(child);
  const pid_t pid = (*child)->pid();
  child->reset();
  ASSERT_TRUE(run_until(io_, [this, pid] { return !launcher_.owns(pid); }));
  EXPECT_EQ(recorder_.exits, 0);  // the observer may be gone by then
  EXPECT_FALSE(read_stat(pid));   // reaped nevertheless
}

TEST_P(LauncherTest, ChildMayBeDestroyedWithinItsExit) {
  std::unique_ptr<ChildProcess> child;
  recorder_.after_exit = [&child] { child.reset(); };
  auto launched = launcher_.launch(shell("exit 1"), recorder_);
  ASSERT_TRUE(launched);
  child = std::move(*launched);
  ASSERT_TRUE(run_until(io_, [this] { return recorder_.exit.has_value(); }));
  EXPECT_EQ(child, nullptr);
}

TEST_P(LauncherTest, StartTicksNameTheProcess) {
  auto child = launcher_.launch(shell("read line"), recorder_);
  ASSERT_TRUE(child);
  const auto stat = read_stat((*child)->pid());
  ASSERT_TRUE(stat);
  EXPECT_EQ((*child)->start_ticks(), stat->start_ticks);
  EXPECT_GT((*child)->start_ticks(), 0U);
  (*child)->close_stdin();
  ASSERT_TRUE(run_until(io_, [this] { return recorder_.exit.has_value(); }));
}

TEST(LaunchError, L21_WhatPassesByItselfIsAResourceFailure) {
  for (const int error : {EMFILE, ENFILE, EAGAIN, ENOMEM, ENOBUFS, EIO, ESTALE, ETXTBSY}) {
    EXPECT_EQ(class_of(launch_error("clone", error)), "resource") << error;
  }
  for (const int error : {ENOENT, EACCES, ENOEXEC, ENOTDIR, EPERM, E2BIG, ELOOP, EINVAL}) {
    EXPECT_EQ(class_of(launch_error("execve /x", error)), "") << error;
  }
  EXPECT_EQ(launch_error("clone", EAGAIN).message, "clone: Resource temporarily unavailable");
}

TEST(Launcher, T64_NoOrphanAfterTheSupervisorIsKilled) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd from_helper(ends[0]);
  UniqueFd to_test(ends[1]);
  boost::asio::io_context io;
  RealLauncher launcher(io);
  Recorder recorder;
  LaunchSpec spec;
  spec.program = BERTH_PROCESS_HELPER;
  spec.argv = {"process_test_helper"};
  spec.output = std::move(to_test);
  auto helper = launcher.launch(std::move(spec), recorder);
  ASSERT_TRUE(helper) << helper.error().message;

  std::string text;
  while (text.find('\n') == std::string::npos) {
    std::array<char, 64> part{};
    const ssize_t got = ::read(from_helper.get(), part.data(), part.size());
    ASSERT_GT(got, 0) << "the helper said nothing";
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  const pid_t orphan = std::stoi(text);
  ASSERT_TRUE(read_stat(orphan));
  // Only the helper, not its group: as the kernel's memory killer would.
  ASSERT_EQ(::kill((*helper)->pid(), SIGKILL), 0);
  ASSERT_TRUE(run_until(io, [&] { return recorder.exit.has_value(); }));
  EXPECT_EQ(core::to_string(*recorder.exit), "SIGKILL");
  EXPECT_TRUE(poll_until([orphan] {
    const auto stat = read_stat(orphan);
    return !stat || stat->state == 'Z';
  }));
}

}  // namespace
}  // namespace berth::process
