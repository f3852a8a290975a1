#include "supervisor/fd_wait.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <functional>

#include "common/fd.h"

namespace berth {
namespace {

class FdWaitTest : public testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    read_ = UniqueFd(ends[0]);
    write_ = UniqueFd(ends[1]);
  }
  void write() { ASSERT_EQ(::write(write_.get(), "x", 1), 1); }

  boost::asio::io_context io_{1};
  process::OnReadable on_readable_ = readable_on(io_);
  UniqueFd read_;
  UniqueFd write_;
};

TEST_F(FdWaitTest, TheCallbackMayWaitAgainForTheSameDescriptor) {
  int calls = 0;
  Timer waiting;
  std::function<void()> again = [&] {
    if (++calls < 3) waiting = on_readable_(read_.get(), again);
  };
  waiting = on_readable_(read_.get(), again);
  write();
  io_.run();
  EXPECT_EQ(calls, 3);
}

TEST_F(FdWaitTest, ADroppedWaitIsNeverCalledAndTheDescriptorStaysOpen) {
  bool called = false;
  Timer waiting = on_readable_(read_.get(), [&] { called = true; });
  write();
  waiting.reset();
  io_.run();
  EXPECT_FALSE(called);
  char byte = 0;
  EXPECT_EQ(::read(read_.get(), &byte, 1), 1);
}

}  // namespace
}  // namespace berth
