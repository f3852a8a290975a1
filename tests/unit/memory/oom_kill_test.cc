#include "supervisor/memory/oom_kill.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "common/fd.h"

namespace berth::memory {
namespace {

constexpr pid_t kPid = 4242;

TEST(OomKill, L9_TheKernelsOwnLineProvesIt) {
  EXPECT_TRUE(tells_of_oom_kill(
      "3,1201,5000,-;Out of memory: Killed process 4242 (berth-worker) total-vm:9kB\n", kPid));
  EXPECT_TRUE(
      tells_of_oom_kill("3,1201,5000,-;Memory cgroup out of memory: Killed process 4242 "
                        "(berth-worker) total-vm:9kB\n",
                        kPid));
  EXPECT_TRUE(
      tells_of_oom_kill("3,1,5000,-;Out of memory (oom_kill_allocating_task): Killed process "
                        "4242 (x) total-vm:9kB\n",
                        kPid));
}

TEST(OomKill, L9_NothingElseDoes) {
  const auto tells = [](const std::string& record) { return tells_of_oom_kill(record, kPid); };
  EXPECT_FALSE(tells("3,1,5000,-;Out of memory: Killed process 42 (berth-worker)\n"));
  EXPECT_FALSE(tells("3,1,5000,-;Out of memory: Killed process 42424 (berth-worker)\n"));
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
  EXPECT_FALSE(tells_of_oom_kill("3,1,5000,-;Out of memory: Killed process 0 (y)", 0));
}

// One record with each read, as of /dev/kmsg.
class KernelLogPlaceTest : public ::testing::Test {
 protected:
  KernelLogPlaceTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends.data()), 0);
    kernel_.reset(ends[0]);
    place_.emplace(UniqueFd(ends[1]));
  }
  void write(const std::string& record) const {
    ASSERT_EQ(::send(kernel_.get(), record.data(), record.size(), 0),
              static_cast<ssize_t>(record.size()));
  }

  UniqueFd kernel_;
  std::optional<KernelLogPlace> place_;
};

// The clock of the records drifts from every other one, so that their times say nothing.
TEST_F(KernelLogPlaceTest, L9_WhateverTheTimeOfANewRecord) {
  write("6,1200,1,-;usb 1-1: new device\n");
  write("3,1201,1,-;Out of memory: Killed process 4242 (berth-worker) total-vm:9kB\n");
  write("6,1202,1,-;usb 1-1: gone\n");
  EXPECT_TRUE(place_->tells_of_kill({kPid}));
}

TEST_F(KernelLogPlaceTest, L9_OfAnotherProcessItProvesNothing) {
  write("3,1201,1,-;Out of memory: Killed process 4242 (berth-worker) total-vm:9kB\n");
  EXPECT_FALSE(place_->tells_of_kill({kPid + 1}));
  EXPECT_FALSE(place_->tells_of_kill({kPid})) << "read already";
}

// That of a command, below berth-shim.
TEST_F(KernelLogPlaceTest, L9_AKillOfTheFirstChildIsOneOfTheProcess) {
  KernelLogPlaces places([](pid_t) { return true; });
  places.put(kPid - 1, std::make_shared<const KernelLogPlace>(*std::move(place_)),
             std::vector<pid_t>{kPid});
  write("3,1201,1,-;Out of memory: Killed process 4242 (vllm) total-vm:9kB\n");
  const auto noted = places.take(kPid - 1);
  ASSERT_NE(noted.place, nullptr);
  EXPECT_TRUE(noted.place->tells_of_kill(noted.pids));
}

TEST(KernelLogPlace, L9_BehindTheNewestRecordNothingIsThereYet) {
  const auto place = KernelLogPlace::newest();
  if (!place) GTEST_SKIP() << "the kernel's log cannot be read here";
  EXPECT_FALSE(place->tells_of_kill({::getpid()}));
}

TEST(KernelLogPlaces, EachProcessHasItsOwnAndTheEndedOnesAreForgotten) {
  const auto any = [] {
    return std::make_shared<const KernelLogPlace>(
        UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
  };
  std::set<pid_t> living = {1};
  KernelLogPlaces places([&living](pid_t pid) { return living.contains(pid); });
  const auto first = any();
  places.put(1, first);
  for (pid_t pid = 2; pid < 500; ++pid) places.put(pid, any());
  EXPECT_EQ(places.size(), 1 + KernelLogPlaces::kMostEnded);
  EXPECT_EQ(places.take(1).place, first);
  EXPECT_EQ(places.take(1).place, nullptr);
  EXPECT_NE(places.take(499).place, nullptr);
  places.put(498, nullptr);
  EXPECT_EQ(places.take(498).place, nullptr) << "that of an earlier process with its number";
}

}  // namespace
}  // namespace berth::memory
