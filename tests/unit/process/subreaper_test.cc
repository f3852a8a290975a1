#include "supervisor/process/subreaper.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "supervisor/process/proc.h"
#include "supervisor/process/process_launcher.h"
#include "tests/unit/process/loop.h"

namespace berth::process {
namespace {

using testing::Recorder;
using testing::run_until;
using testing::shell;

class SubreaperTest : public ::testing::Test {
 protected:
  SubreaperTest() {
    auto started = Subreaper::start(io_, [this](pid_t pid) { return launcher_.owns(pid); });
    if (!started) throw std::runtime_error(started.error().message);
    reaper_ = std::move(*started);
  }
  // Whatever a test has started goes with it, also when it failed half-way.
  void TearDown() override {
    if (!reaper_) return;
    EXPECT_TRUE(run_until(io_, [this] {
      reaper_->sweep();
      return children_of(::getpid()).empty();
    }));
  }

  boost::asio::io_context io_{1};
  RealLauncher launcher_{io_};
  std::unique_ptr<Subreaper> reaper_;
  Recorder recorder_;
};

bool gone(pid_t pid) {
  return !read_stat(pid);
}

// As many children as are launched, and none of them defunct.
TEST_F(SubreaperTest, T66_NoZombieIsLeft) {
  // Grandchildren of all kinds: ended before and after their parent, in sessions of their own.
  auto child = launcher_.launch(shell("for i in 1 2 3 4 5; do (setsid sh -c '(sleep 600) & "
                                      "(true) & sleep 600' &) ; (true &) ; done; echo up >&3; "
                                      "read line; exit 0"),
                                recorder_);
  ASSERT_TRUE(child);
  ASSERT_TRUE(run_until(io_, [this] { return !recorder_.lines.empty(); }));
  (*child)->close_stdin();
  ASSERT_TRUE(run_until(io_, [this] { return recorder_.exit.has_value(); }));
  ASSERT_TRUE(run_until(io_, [] { return children_of(::getpid()).empty(); }));
}

TEST_F(SubreaperTest, L4_OrphanInASessionOfItsOwnIsKilledAndReaped) {
  auto child = launcher_.launch(
      shell("setsid sh -c 'trap \"\" TERM HUP; echo $$ >&3; sleep 600 & wait' & read line"),
      recorder_);
  ASSERT_TRUE(child);
  ASSERT_TRUE(run_until(io_, [this] { return !recorder_.lines.empty(); }));
  const pid_t stray = std::stoi(recorder_.lines.front());
  EXPECT_NE(::getpgid(stray), (*child)->pid());
  (*child)->close_stdin();
  ASSERT_TRUE(run_until(io_, [this, stray] { return recorder_.exit && gone(stray); }));
  // The stray's own child comes here when the stray has ended, and goes in its turn.
  ASSERT_TRUE(run_until(io_, [] { return children_of(::getpid()).empty(); }));
}

TEST_F(SubreaperTest, StatusOfALaunchedChildIsNeverTakenAway) {
  for (int i = 0; i < 20; ++i) {
    Recorder recorder;
    auto child = launcher_.launch(shell("exit 5"), recorder);
    ASSERT_TRUE(child);
    // The child is a zombie that a careless sweep would reap.
    ASSERT_TRUE(testing::poll_until([&] {
      const auto stat = read_stat((*child)->pid());
      return stat && stat->state == 'Z';
    }));
    reaper_->sweep();
    ASSERT_TRUE(run_until(io_, [&] { return recorder.exit.has_value(); }));
    EXPECT_EQ(*recorder.exit, core::ExitStatus(core::Exited{5}));
  }
}

TEST_F(SubreaperTest, OrphanInTheGroupOfALivingWorkerIsLeftAlone) {
  // The subshell in between ends, so that the sleeper becomes a child of this process.
  auto child =
      launcher_.launch(shell("(sleep 600 & echo $! >&3); echo up >&3; read line"), recorder_);
  ASSERT_TRUE(child);
  ASSERT_TRUE(run_until(io_, [this] { return recorder_.lines.size() == 2; }));
  const pid_t sleeper = std::stoi(recorder_.lines.front());
  ASSERT_EQ(read_stat(sleeper)->parent, ::getpid());
  reaper_->sweep();
  reaper_->sweep();
  const auto stat = read_stat(sleeper);
  ASSERT_TRUE(stat);
  EXPECT_NE(stat->state, 'Z');
  (*child)->close_stdin();
  ASSERT_TRUE(run_until(io_, [this, sleeper] { return recorder_.exit && gone(sleeper); }));
}

// Nothing ends meanwhile that would tell of it.
TEST_F(SubreaperTest, T66_AnOrphanThatLeavesTheGroupOfALivingWorkerGoes) {
  auto child = launcher_.launch(
      shell("(sh -c 'echo $$ >&3; kill -STOP $$; exec setsid sleep 600' &); read line"), recorder_);
  ASSERT_TRUE(child);
  ASSERT_TRUE(run_until(io_, [this] { return !recorder_.lines.empty(); }));
  const pid_t stray = std::stoi(recorder_.lines.front());
  ASSERT_TRUE(run_until(io_, [&] {
    const auto stat = read_stat(stray);
    return stat && stat->state == 'T' && stat->parent == ::getpid();
  }));
  reaper_->sweep();
  ASSERT_TRUE(read_stat(stray));
  ASSERT_EQ(::kill(stray, SIGCONT), 0);
  EXPECT_TRUE(run_until(io_, [stray] { return gone(stray); }));
}

TEST_F(SubreaperTest, ThereIsOneOnly) {
  const auto second = Subreaper::start(io_, [](pid_t) { return true; });
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason, Reason::kInternal);
  reaper_.reset();
  EXPECT_TRUE(Subreaper::start(io_, [](pid_t) { return true; }));
}

}  // namespace
}  // namespace berth::process
