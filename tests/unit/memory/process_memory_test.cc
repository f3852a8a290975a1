#include "supervisor/memory/process_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace berth::memory {
namespace {

TEST(ProcessMemory, ReadsThisProcess) {
  const auto before = read_process_memory(::getpid());
  ASSERT_TRUE(before) << before.error().message;
  EXPECT_GT(before->resident, 0U);

  constexpr std::size_t kBytes = std::size_t{64} << 20U;
  std::vector<char> touched(kBytes, 'x');
  const auto after = read_process_memory(::getpid());
  ASSERT_TRUE(after);
  EXPECT_GE(after->resident, before->resident + kBytes / 2);
  EXPECT_EQ(touched.back(), 'x');
  if (after->proportional) {
    EXPECT_LE(*after->proportional, after->resident);
  }
}

TEST(ProcessMemory, MissingProcessIsNotFound) {
  const auto memory = read_process_memory(std::numeric_limits<pid_t>::max());
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().reason, Reason::kNotFound);
}

TEST(ProcessMemory, ParsesRollup) {
  const auto memory = parse_smaps_rollup(
      "55d0a0000000-7ffc00000000 ---p 00000000 00:00 0    [rollup]\nRss:     4096 kB\n"
      "Pss:     1024 kB\nPss_Dirty: 7 kB\n");
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->resident, 4096U * 1024U);
  EXPECT_EQ(memory->proportional, 1024U * 1024U);
  EXPECT_FALSE(parse_smaps_rollup("Rss: 1 kB\n"));
}

TEST(ProcessMemory, ParsesStatm) {
  const auto memory = parse_statm("1000 250 100 10 0 200 0\n", 4096);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->resident, 250U * 4096U);
  EXPECT_FALSE(memory->proportional);
  for (const char* text : {"", "1000", "1000 x", "1 18446744073709551615"}) {
    EXPECT_FALSE(parse_statm(text, 4096)) << text;
  }
}

}  // namespace
}  // namespace berth::memory
