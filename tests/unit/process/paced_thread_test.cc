#include "supervisor/process/paced_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "tests/unit/process/loop.h"

namespace berth::process {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class PacedThreadTest : public ::testing::Test {
 protected:
  // At `at` after the begin. Whether a job was started; it has ended then.
  bool started(seconds at) {
    auto ended = std::make_shared<std::promise<void>>();
    auto end = ended->get_future();
    const int before = starts_;
    thread_.run(kBegin + at, [this, ended] {
      ++starts_;
      ended->set_value_at_thread_exit();
    });
    ended.reset();
    // Broken where it was not taken.
    end.wait_for(testing::kGenerous);
    return starts_ > before;
  }
  static constexpr PacedThread::Time kBegin{std::chrono::hours(1)};

  std::atomic<int> starts_{0};
  PacedThread thread_{seconds(15), minutes(4)};
};

TEST_F(PacedThreadTest, ThePauseDoublesUpToTheLongest) {
  EXPECT_TRUE(started(seconds(0)));
  EXPECT_FALSE(started(seconds(14)));
  EXPECT_TRUE(started(seconds(15)));
  EXPECT_FALSE(started(seconds(44)));
  EXPECT_TRUE(started(seconds(45)));
  EXPECT_TRUE(started(seconds(105)));
  EXPECT_TRUE(started(seconds(225)));
  EXPECT_FALSE(started(seconds(225 + 239)));
  EXPECT_TRUE(started(seconds(225 + 240)));
  EXPECT_FALSE(started(seconds(465 + 239)));
  EXPECT_TRUE(started(seconds(465 + 240)));
}

TEST_F(PacedThreadTest, OneThatHangsIsTheOnlyOne) {
  std::promise<void> go_on;
  std::atomic<int> starts{0};
  std::promise<void> ended;
  thread_.run(kBegin, [&, gate = go_on.get_future().share()] {
    ++starts;
    gate.wait();
    ended.set_value_at_thread_exit();
  });
  for (int hour = 1; hour < 100; ++hour) {
    thread_.run(kBegin + std::chrono::hours(hour), [&starts] { ++starts; });
  }
  go_on.set_value();
  ASSERT_EQ(ended.get_future().wait_for(testing::kGenerous), std::future_status::ready);
  EXPECT_EQ(starts, 1);
  EXPECT_TRUE(started(std::chrono::hours(101))) << "when that one ended";
}

}  // namespace
}  // namespace berth::process
