#include "supervisor/memory/pressure_reading.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace berth::memory {
namespace {

TEST(PressureReading, S18_ReadsTheSharesOfTheLastTenSeconds) {
  const auto shares = parse_pressure(
      "some avg10=12.34 avg60=1.00 avg300=0.50 total=1\nfull avg10=0.00 avg60=3.00 avg300=2.00 "
      "total=7\n");
  ASSERT_TRUE(shares);
  EXPECT_DOUBLE_EQ(shares->some, 12.34);
  EXPECT_DOUBLE_EQ(shares->full, 0);
}

TEST(PressureReading, RefusesWhatIsNoPressure) {
  for (const char* text :
       {"", "some avg10=1.0 total=1\n", "some avg10=x total=1\nfull avg10=1 total=1\n",
        "some avg10=nan total=1\nfull avg10=1 total=1\n",
        "some avg10=101 total=1\nfull avg10=1 total=1\n",
        "some avg10=-1 total=1\nfull avg10=1 total=1\n", "some\nfull\n"}) {
    EXPECT_FALSE(parse_pressure(text)) << text;
  }
}

TEST(PressureReading, S18_ReadsTheCountsOfACgroup) {
  const auto events = parse_memory_events("low 0\nhigh 17\nmax 3\noom 2\noom_kill 1\n");
  ASSERT_TRUE(events);
  EXPECT_EQ(events->high, 17U);
  EXPECT_EQ(events->max, 3U);
  EXPECT_EQ(events->oom_kills, 1U);
  EXPECT_FALSE(parse_memory_events("low 0\n"));
  EXPECT_FALSE(read_memory_events("/nonexistent"));
}

TEST(PressureReading, M3_OwnMemoryIsWhatIsNoCleanPageOfAFile) {
  EXPECT_EQ(parse_own_memory("VmRSS:\t 900 kB\nRssAnon:\t 100 kB\nRssFile:\t 700 kB\nRssShmem:\t "
                             "100 kB\n"),
            200U * 1024);
  EXPECT_FALSE(parse_own_memory("Name:\tkthreadd\n"));
  EXPECT_GT(read_own_memory(::getpid()).value_or(0), 0U);
  EXPECT_FALSE(read_own_memory(-1));
}

}  // namespace
}  // namespace berth::memory
