#include "supervisor/core/exit_status.h"

#include <gtest/gtest.h>

namespace berth::core {
namespace {

TEST(ExitStatus, SaysHowAProcessEnded) {
  EXPECT_EQ(to_string(Exited{0}), "exit 0");
  EXPECT_EQ(to_string(Exited{1}), "exit 1");
  EXPECT_EQ(to_string(Signalled{11, false}), "SIGSEGV");
  EXPECT_EQ(to_string(Signalled{11, true}), "SIGSEGV (core dumped)");
  EXPECT_EQ(to_string(UnknownExit{}), "exit unknown");
}

// T7: a worker that died of SIGBUS is reported by that name.
TEST(ExitStatus, T7_NamesEverySignal) {
  EXPECT_EQ(signal_name(7), "SIGBUS");
  EXPECT_EQ(signal_name(9), "SIGKILL");
  EXPECT_EQ(signal_name(15), "SIGTERM");
  EXPECT_EQ(signal_name(31), "SIGSYS");
  EXPECT_EQ(signal_name(44), "signal 44");
  EXPECT_EQ(signal_name(0), "signal 0");
  EXPECT_EQ(signal_name(-1), "signal -1");
}

}  // namespace
}  // namespace berth::core
