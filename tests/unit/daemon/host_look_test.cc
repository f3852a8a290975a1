#include "supervisor/host_look.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace berth {
namespace {

const memory::OwnProcess* find(const memory::HostReading& reading, pid_t pid) {
  const auto found = std::ranges::find(reading.processes, pid, &memory::OwnProcess::pid);
  return found == reading.processes.end() ? nullptr : &*found;
}

TEST(HostLook, M3_OurProcessesAreThisOneAndAllBelowIt) {
  constexpr std::size_t kTaken = std::size_t{8} << 20U;
  std::array<int, 2> told{};
  std::array<int, 2> held{};
  ASSERT_EQ(::pipe(told.data()), 0);
  ASSERT_EQ(::pipe(held.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const pid_t below = ::fork();
    if (below == 0) {
      void* const taken =
          ::mmap(nullptr, kTaken, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      std::memset(taken, 1, kTaken);
      const pid_t self = ::getpid();
      static_cast<void>(::write(told[1], &self, sizeof self));
    }
    ::close(held[1]);
    char end = 0;
    static_cast<void>(::read(held[0], &end, 1));
    if (below > 0) ::waitpid(below, nullptr, 0);
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  pid_t below = 0;
  ASSERT_EQ(::read(told[0], &below, sizeof below), static_cast<ssize_t>(sizeof below));
  HostLook look(::getpid(), "", "");
  const memory::HostReading reading = look.read();
  ::close(held[1]);
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(reading.machine);
  const memory::OwnProcess* const self = find(reading, ::getpid());
  const memory::OwnProcess* const grandchild = find(reading, below);
  ASSERT_NE(self, nullptr);
  ASSERT_NE(find(reading, child), nullptr);
  ASSERT_NE(grandchild, nullptr);
  EXPECT_EQ(grandchild->child, child);
  EXPECT_GE(grandchild->bytes, kTaken);
  EXPECT_EQ(find(reading, 1), nullptr);
  EXPECT_FALSE(reading.cgroup);
  for (const int fd : {told[0], told[1], held[0]}) ::close(fd);
}

}  // namespace
}  // namespace berth
