#include "supervisor/process/process_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "common/fd.h"
#include "supervisor/process/proc.h"
#include "supervisor/process/process_launcher.h"
#include "tests/unit/process/loop.h"

namespace berth::process {
namespace {

using testing::poll_until;
using testing::Recorder;
using testing::run_until;
using testing::shell;

class ProcessTreeTest : public ::testing::Test {
 protected:
  ~ProcessTreeTest() override {
    if (stray_) ::syscall(SYS_pidfd_send_signal, stray_.get(), SIGKILL, nullptr, 0);
    if (!child_) return;
    child_->signal_group(SIGKILL);
    run_until(io_, [this] { return recorder_.exit.has_value(); });
  }

  // Starts a script and waits for its first line on fd 3.
  ProcessTree start(const std::string& script) {
    auto child = launcher_.launch(shell(script), recorder_);
    EXPECT_TRUE(child);
    child_ = std::move(*child);
    EXPECT_TRUE(run_until(io_, [this] { return !recorder_.lines.empty(); }));
    return {child_->pid(), child_->start_ticks(), ::getpid()};
  }

  boost::asio::io_context io_{1};
  RealLauncher launcher_{io_};
  Recorder recorder_;
  std::unique_ptr<ChildProcess> child_;
  UniqueFd stray_;  // a process out of the child's group, which nothing else would end
};

TEST_F(ProcessTreeTest, L8_CountsTheWholeTree) {
  ProcessTree tree = start("(sh -c 'sleep 600 & sleep 600; :' & wait) & echo up >&3; wait");
  // sh, subshell, sh, two sleeps.
  ASSERT_TRUE(poll_until([&] {
    const auto use = tree.sample();
    return use && use->processes == 5;
  }));
  const auto use = tree.sample();
  EXPECT_TRUE(use->complete);
  EXPECT_GT(use->resident_bytes, 100'000U);
  EXPECT_TRUE(use->read_bytes && use->storage_bytes);
  EXPECT_EQ(tree.members().front(), child_->pid());
}

TEST_F(ProcessTreeTest, L8_SeesAGrandchildRead) {
  ProcessTree tree =
      start("(while :; do cat /proc/self/maps > /dev/null; done) & echo up >&3; wait");
  const auto first = tree.sample();
  ASSERT_TRUE(first && first->read_bytes);
  EXPECT_TRUE(poll_until([&] {
    const auto use = tree.sample();
    return use && use->read_bytes.value_or(0) > *first->read_bytes + 100'000;
  }));
}

TEST_F(ProcessTreeTest, L8_SeesAGrandchildCompute) {
  ProcessTree tree = start("(while :; do :; done) & echo up >&3; wait");
  EXPECT_TRUE(poll_until([&] {
    const auto use = tree.sample();
    return use && use->cpu_time >= std::chrono::milliseconds(100);
  }));
}

TEST_F(ProcessTreeTest, L8_EndedChildrenStayCounted) {
  ProcessTree tree =
      start("dd if=/dev/zero of=/dev/null bs=64k count=64 2> /dev/null; echo up >&3; read line");
  const auto use = tree.sample();
  ASSERT_TRUE(use && use->read_bytes);
  EXPECT_EQ(use->processes, 1U);
  EXPECT_GE(*use->read_bytes, 64U * 65536U);
}

TEST_F(ProcessTreeTest, L8_ADaemonisedGrandchildStaysCounted) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
  // Its parent lives until a line comes; its session is its own, so only its being known tells.
  ProcessTree tree = start(
      "exec 4<&0; (setsid sh -c 'echo $$ >&3; exec sleep 600' & read line <&4; exit 0) & wait; "
      "exec sleep 600");
  const pid_t stray = std::stoi(recorder_.lines.front());
  stray_.reset(static_cast<int>(::syscall(SYS_pidfd_open, stray, 0)));
  ASSERT_TRUE(stray_);
  const auto has_stray = [&] {
    return tree.sample() && std::ranges::count(tree.members(), stray) == 1;
  };
  ASSERT_TRUE(poll_until(has_stray));
  child_->close_stdin();
  ASSERT_TRUE(poll_until([&] {
    const auto stat = read_stat(stray);
    return stat && stat->parent == ::getpid();
  }));
  EXPECT_TRUE(has_stray());
  // To one who has not seen it before it is a stranger.
  ProcessTree late(child_->pid(), child_->start_ticks(), ::getpid());
  ASSERT_TRUE(late.sample());
  EXPECT_EQ(std::ranges::count(late.members(), stray), 0);
  ::kill(stray, SIGKILL);
  ASSERT_TRUE(poll_until([&] {
    const auto stat = read_stat(stray);
    return stat && stat->state == 'Z';
  }));
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(stray), &info, WEXITED);
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0);
}

TEST_F(ProcessTreeTest, L8_AnotherProcessWithTheNumberIsNotTakenForIt) {
  start("echo up >&3; read line");
  ProcessTree other(child_->pid(), child_->start_ticks() + 1, ::getpid());
  EXPECT_FALSE(other.sample());
  EXPECT_TRUE(other.members().empty());
}

TEST_F(ProcessTreeTest, L8_ProcessesThatComeAndGoAreNoTrouble) {
  ProcessTree tree = start("while :; do (true &) ; sh -c true & done & echo up >&3; read line");
  for (int i = 0; i < 500; ++i) {
    const auto use = tree.sample();
    ASSERT_TRUE(use);
    ASSERT_GE(use->processes, 1U);
  }
}

TEST_F(ProcessTreeTest, L8_AGoneTreeIsNothing) {
  ProcessTree tree = start("echo up >&3; read line");
  child_->close_stdin();
  ASSERT_TRUE(run_until(io_, [this] { return recorder_.exit.has_value(); }));
  EXPECT_FALSE(tree.sample());
}

TEST_F(ProcessTreeTest, L8_NoMoreProcessesThanAreLookedAt) {
  ProcessTree tree = start(
      "i=0; while [ $i -lt 550 ]; do sleep 600 & i=$((i+1)); done; "
      "echo up >&3; wait");
  const auto use = tree.sample();
  ASSERT_TRUE(use);
  EXPECT_EQ(use->processes, ProcessTree::kMostProcesses);
  EXPECT_FALSE(use->complete);
}

}  // namespace
}  // namespace berth::process
