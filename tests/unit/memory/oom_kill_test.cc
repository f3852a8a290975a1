#include "supervisor/memory/oom_kill.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace berth::memory {
namespace {

constexpr pid_t kPid = 4242;

TEST(OomKill, L9_TheKernelsOwnLineProvesIt) {
  EXPECT_TRUE(tells_of_oom_kill(
      "3,1201,5000,-;Out of memory: Killed process 4242 (berth-worker) total-vm:9kB\n", kPid,
      5000));
  EXPECT_TRUE(
      tells_of_oom_kill("3,1201,5000,-;Memory cgroup out of memory: Killed process 4242 "
                        "(berth-worker) total-vm:9kB\n",
                        kPid, 0));
  EXPECT_TRUE(
      tells_of_oom_kill("3,1,5000,-;Out of memory (oom_kill_allocating_task): Killed process "
                        "4242 (x) total-vm:9kB\n",
                        kPid, 0));
}

TEST(OomKill, L9_NothingElseDoes) {
  const auto tells = [](const std::string& record) {
    return tells_of_oom_kill(record, kPid, 4000);
  };
  EXPECT_FALSE(tells("3,1,5000,-;Out of memory: Killed process 42 (berth-worker)\n"));
  EXPECT_FALSE(tells("3,1,5000,-;Out of memory: Killed process 42424 (berth-worker)\n"));
  EXPECT_FALSE(tells("3,1,3999,-;Out of memory: Killed process 4242 (berth-worker)\n")) << "old";
  EXPECT_FALSE(tells("11,1,5000,-;Out of memory: Killed process 4242 (berth-worker)\n"))
      << "a program wrote it";
  EXPECT_FALSE(tells("3,1,5000,-;Out of memory: Killed process 1 (x: Killed process 4242 (y)\n"))
      << "the name of another process";
  EXPECT_FALSE(tells("3,1,5000,-;usb: Killed process 4242 (y)\n"));
  EXPECT_FALSE(tells("3,1,5000,-;oom_reaper: reaped process 4242 (y)\n"));
  for (const char* broken : {"", ";", "3", "3,1,5000", "3,1;Out of memory: Killed process 4242 (y)",
                             "x,1,5000,-;Out of memory: Killed process 4242 (y)"}) {
    EXPECT_FALSE(tells(broken)) << broken;
  }
  EXPECT_FALSE(tells_of_oom_kill("3,1,5000,-;Out of memory: Killed process 0 (y)", 0, 0));
}

TEST(OomKill, L9_AProcessThatLivesWasNotKilled) {
  EXPECT_FALSE(kernel_killed_for_memory(::getpid()));
}

}  // namespace
}  // namespace berth::memory
