#include "supervisor/process/leftovers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "supervisor/process/instance_mark.h"
#include "supervisor/process/proc.h"
#include "tests/unit/process/loop.h"
#include "tests/unit/process/temp_dir.h"

namespace berth::process {
namespace {

using testing::kGenerous;
using testing::Recorder;
using testing::run_until;
using testing::shell;

class LeftoversTest : public ::testing::Test {
 protected:
  // A process that only SIGKILL ends, with a child of its own; as it would be recorded.
  Leftover start() {
    auto child = launcher_.launch(
        shell("trap '' TERM HUP; sleep 600 & echo $! >&3; while :; do wait; done"), recorder_);
    EXPECT_TRUE(child);
    child_ = std::move(*child);
    EXPECT_TRUE(run_until(io_, [this] { return !recorder_.lines.empty(); }));
    return {child_->pid(), child_->start_ticks(), *boot_id()};
  }
  bool lives() const {
    const auto stat = read_stat(child_->pid());
    return stat && stat->state != 'Z';
  }
  void TearDown() override {
    if (!child_) return;
    child_->signal_group(SIGKILL);
    ASSERT_TRUE(run_until(io_, [this] { return recorder_.exit.has_value(); }));
  }

  boost::asio::io_context io_{1};
  RealLauncher launcher_{io_};
  Recorder recorder_;
  std::unique_ptr<ChildProcess> child_;
};

TEST_F(LeftoversTest, L4_KillsTheProcessOfTheRecordAndItsGroup) {
  const Leftover leftover = start();
  const pid_t grandchild = std::stoi(recorder_.lines.front());
  const auto ends = kill_leftovers({leftover}, kGenerous);
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0], LeftoverEnd::kKilled);
  EXPECT_FALSE(lives());
  EXPECT_TRUE(testing::poll_until([grandchild] {
    const auto stat = read_stat(grandchild);
    return !stat || stat->state == 'Z';
  }));
  // It has ended, though nobody reaped it yet.
  EXPECT_EQ(kill_leftovers({leftover}, kGenerous)[0], LeftoverEnd::kGone);
}

TEST_F(LeftoversTest, L4_AnotherProcessUnderTheSameNumberIsSpared) {
  Leftover leftover = start();
  leftover.start_ticks += 1;
  EXPECT_EQ(kill_leftovers({leftover}, kGenerous)[0], LeftoverEnd::kGone);
  EXPECT_TRUE(lives());
}

TEST_F(LeftoversTest, L4_ARecordOfAnotherBootIsSpared) {
  Leftover leftover = start();
  leftover.boot_id = "00000000-0000-0000-0000-000000000000";
  EXPECT_EQ(kill_leftovers({leftover}, kGenerous)[0], LeftoverEnd::kGone);
  EXPECT_TRUE(lives());
}

TEST_F(LeftoversTest, RecordsWithoutAProcessAreGone) {
  const Leftover real = start();
  const auto ends = kill_leftovers({{0, 0, real.boot_id},
                                    {-1, 0, real.boot_id},
                                    {1, 0, real.boot_id},
                                    {2'000'000'000, 5, real.boot_id},
                                    real},
                                   kGenerous);
  ASSERT_EQ(ends.size(), 5U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(ends[i], LeftoverEnd::kGone) << i;
  EXPECT_EQ(ends[4], LeftoverEnd::kKilled);
}

constexpr const char* kInstance = "01890a5d-ac96-774b-bcce-b302099a8057";

// What a command worker leaves behind whose shim was killed together with the supervisor: some in
// sessions of their own, with children, deaf to what can be ignored.
class MarkedLeftoversTest : public LeftoversTest {
 protected:
  static constexpr std::size_t kFamily = 6;

  // Starts a family that is marked as that of `owner`, and kills the shim above it.
  void leave_family(const std::string& owner) {
    LaunchSpec spec = shell(
        "for i in 1 2 3; do (setsid sh -c 'trap \"\" TERM HUP; sleep 600 & echo $$ $!; wait' &); "
        "done; exec sleep 600");
    spec.environment.push_back(instance_mark(kInstance, owner));
    spec.shim = BERTH_SHIM;
    const std::string output = dir_.file("out");
    spec.output.reset(::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR));
    auto child = launcher_.launch(std::move(spec), recorder_);
    ASSERT_TRUE(child);
    ASSERT_TRUE(testing::poll_until([&] {
      pids_.clear();
      std::istringstream text(testing::slurp(output));
      for (pid_t pid = 0; text >> pid;) pids_.push_back(pid);
      return pids_.size() == kFamily;
    }));
    for (const pid_t pid : pids_) {
      pidfds_.emplace_back(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
      ASSERT_TRUE(pidfds_.back());
    }
    ASSERT_EQ(::kill((*child)->pid(), SIGKILL), 0);
    ASSERT_TRUE(run_until(io_, [this] { return recorder_.exit.has_value(); }));
  }
  [[nodiscard]] std::size_t living() const {
    return static_cast<std::size_t>(std::ranges::count_if(pidfds_, [](const UniqueFd& pidfd) {
      pollfd wait{pidfd.get(), POLLIN, 0};
      return ::poll(&wait, 1, 0) == 0;
    }));
  }
  void TearDown() override {
    for (const UniqueFd& pidfd : pidfds_) {
      ::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
    }
    kill_marked(owner_, kGenerous);  // what a failed test has left
  }

  testing::TempDir dir_;
  const std::string owner_ = *mark_owner(dir_.path());
  std::vector<pid_t> pids_;
  std::vector<UniqueFd> pidfds_;
};

TEST_F(MarkedLeftoversTest, L4_WhatAKilledShimLeftIsFoundByItsMark) {
  leave_family(owner_);
  ASSERT_EQ(living(), kFamily);
  const auto found = kill_marked(owner_, kGenerous);
  EXPECT_EQ(living(), 0U);
  for (const pid_t pid : pids_) {
    const auto one = std::ranges::find(found, pid, &MarkedLeftover::pid);
    ASSERT_NE(one, found.end());
    EXPECT_EQ(one->instance, kInstance);
    EXPECT_EQ(one->end, LeftoverEnd::kKilled);
  }
  EXPECT_TRUE(kill_marked(owner_, kGenerous).empty());
}

TEST_F(MarkedLeftoversTest, L4_AnotherSupervisorsWorkersAreSpared) {
  leave_family(owner_ + "0");
  EXPECT_TRUE(kill_marked(owner_, kGenerous).empty());
  EXPECT_EQ(living(), kFamily);
}

TEST_F(MarkedLeftoversTest, L4_OneThatForksOnIsCaught) {
  LaunchSpec spec = shell(
      "setsid sh -c 'trap \"\" TERM HUP; echo up >&3; "
      "while :; do (sleep 600 &); (sleep 600 &); sleep 0.01; done' & wait");
  spec.environment.push_back(instance_mark(kInstance, owner_));
  auto child = launcher_.launch(std::move(spec), recorder_);
  ASSERT_TRUE(child);
  ASSERT_TRUE(run_until(io_, [this] { return !recorder_.lines.empty(); }));
  const auto found = kill_marked(owner_, kGenerous);
  EXPECT_FALSE(found.empty());
  for (const pid_t pid : numbered_entries("/proc")) {
    EXPECT_FALSE(marked_instance(environment_of(pid), owner_)) << pid;
  }
  ASSERT_TRUE(run_until(io_, [this] { return recorder_.exit.has_value(); }));
}

}  // namespace
}  // namespace berth::process
