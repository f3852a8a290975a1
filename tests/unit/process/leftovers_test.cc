#include "supervisor/process/leftovers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <memory>

#include "supervisor/process/proc.h"
#include "tests/unit/process/loop.h"

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
        shell("trap '' TERM HUP; sleep 3600 & echo $! >&3; while :; do wait; done"), recorder_);
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

}  // namespace
}  // namespace berth::process
