#include "common/units.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>

namespace berth {
namespace {

using std::chrono::milliseconds;

TEST(Units, ParsesBytes) {
  EXPECT_EQ(parse_bytes("0").value(), 0U);
  EXPECT_EQ(parse_bytes("100B").value(), 100U);
  EXPECT_EQ(parse_bytes("64KiB").value(), 65'536U);
  EXPECT_EQ(parse_bytes("512MiB").value(), 512ULL << 20U);
  EXPECT_EQ(parse_bytes("8GiB").value(), 8ULL << 30U);
  EXPECT_EQ(parse_bytes("1TiB").value(), 1ULL << 40U);
  EXPECT_EQ(parse_bytes("18446744073709551615B").value(),
            std::numeric_limits<std::uint64_t>::max());
}

TEST(Units, RefusesWhatIsNoSize) {
  for (const std::string text :
       {"", "12", "GiB", "-1B", "+1B", "1.5GiB", "1 GiB", "1gib", "1GB", "1GiB ", " 1GiB", "1GiB2",
        "16777216TiB", "18446744073709551616B", "1GiB1MiB", "0x10B", "all"}) {
    const auto parsed = parse_bytes(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().reason, Reason::kInvalidArgument);
    EXPECT_NE(parsed.error().message.find("'" + text + "'"), std::string::npos)
        << parsed.error().message;
    EXPECT_NE(parsed.error().message.find("512MiB"), std::string::npos) << parsed.error().message;
  }
}

TEST(Units, LongTextIsCutInTheMessage) {
  EXPECT_LT(parse_bytes(std::string(100'000, 'x')).error().message.size(), 300U);
}

TEST(Units, FormatsBytesWithThreeFigures) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(1'471'026'299), "1.37 GiB");
  EXPECT_EQ(format_bytes(10ULL << 30U), "10.0 GiB");
  EXPECT_EQ(format_bytes(100ULL << 30U), "100 GiB");
  EXPECT_EQ(format_bytes((1ULL << 30U) - 1), "1.00 GiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<std::uint64_t>::max()), "16.0 EiB");
}

TEST(Units, ParsesDurations) {
  EXPECT_EQ(parse_duration("0").value(), milliseconds(0));
  EXPECT_EQ(parse_duration("250ms").value(), milliseconds(250));
  EXPECT_EQ(parse_duration("30s").value(), milliseconds(30'000));
  EXPECT_EQ(parse_duration("5m").value(), milliseconds(300'000));
  EXPECT_EQ(parse_duration("1h").value(), milliseconds(3'600'000));
  EXPECT_EQ(parse_duration("1h30m").value(), milliseconds(5'400'000));
  EXPECT_EQ(parse_duration("87600h").value(), std::chrono::hours(87'600));
}

TEST(Units, RefusesWhatIsNoDuration) {
  for (const std::string text :
       {"", "30", "s", "-1s", "1.5h", "1 h", "30S", "30m1h", "1h1h", "90000h", "1h ", "1d",
        "99999999999999999999s", "18446744073709551615ms"}) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().reason, Reason::kInvalidArgument);
    EXPECT_NE(parsed.error().message.find("30s"), std::string::npos) << parsed.error().message;
  }
}

TEST(Units, FormatsDurationsForPeople) {
  EXPECT_EQ(format_duration_human(milliseconds(0)), "0 ms");
  EXPECT_EQ(format_duration_human(milliseconds(850)), "850 ms");
  EXPECT_EQ(format_duration_human(milliseconds(12'340)), "12.3 s");
  EXPECT_EQ(format_duration_human(milliseconds(59'999)), "1 min");
  EXPECT_EQ(format_duration_human(milliseconds(250'000)), "4 min 10 s");
  EXPECT_EQ(format_duration_human(milliseconds(3'599'900)), "1 h");
  EXPECT_EQ(format_duration_human(milliseconds(11'100'000)), "3 h 5 min");
  EXPECT_EQ(format_duration_human(std::chrono::hours(50)), "2 d 2 h");
  EXPECT_EQ(format_duration_human(milliseconds(-850)), "-850 ms");
  EXPECT_FALSE(format_duration_human(milliseconds::min()).empty());
  EXPECT_FALSE(format_duration_human(milliseconds::max()).empty());
}

TEST(Units, FormatsDurationsShortest) {
  EXPECT_EQ(format_duration(milliseconds(0)), "0s");
  EXPECT_EQ(format_duration(milliseconds(90'000)), "90s");
  EXPECT_EQ(format_duration(milliseconds(3'600'000)), "1h");
  EXPECT_EQ(format_duration(milliseconds(250)), "250ms");
}

RC_GTEST_PROP(Units, DurationsReadBack, (std::uint32_t seconds, std::uint16_t ms)) {
  const milliseconds duration(std::int64_t{seconds % 300'000'000} * 1000 + ms % 1000);
  RC_ASSERT(parse_duration(format_duration(duration)).value() == duration);
}

RC_GTEST_PROP(Units, AnyTextIsASizeOrAnError, (const std::string& text)) {
  const auto parsed = parse_bytes(text);
  RC_ASSERT(parsed.has_value() || !parsed.error().message.empty());
  RC_ASSERT(parse_duration(text).has_value() || !parse_duration(text).error().message.empty());
}

}  // namespace
}  // namespace berth
