#include "supervisor/memory/host_memory.h"

#include <gtest/gtest.h>

namespace berth::memory {
namespace {

TEST(HostMemory, ReadsThisMachine) {
  const auto memory = read_host_memory();
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_GT(memory->total, std::uint64_t{16} << 20U);
  EXPECT_GT(memory->available, 0U);
  EXPECT_LE(memory->available, memory->total);
}

TEST(HostMemory, ParsesKibibytes) {
  const auto memory = parse_meminfo(
      "MemTotal:       24599156 kB\nMemFree:        23876204 kB\nMemAvailable:   24094968 kB\n");
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->total, 24599156ULL * 1024);
  EXPECT_EQ(memory->available, 24094968ULL * 1024);
}

TEST(HostMemory, RefusesWhatIsNoMeminfo) {
  for (const char* text :
       {"", "MemTotal: 1 kB\n", "MemTotal: x kB\nMemAvailable: 1 kB\n", "MemTotalX: 1 kB",
        "MemTotal: 99999999999999999999 kB\nMemAvailable: 1 kB\n",
        "MemTotal: 18446744073709551615 kB\nMemAvailable: 1 kB\n"}) {
    EXPECT_FALSE(parse_meminfo(text)) << text;
  }
}

}  // namespace
}  // namespace berth::memory
