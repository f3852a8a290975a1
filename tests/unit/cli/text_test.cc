#include "supervisor/cli/format/text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/text.h"

namespace berth::cli {
namespace {

using namespace std::chrono_literals;

TEST(Harmless, NeutralisesEscapeSequences) {
  EXPECT_EQ(harmless("a\x1b[31mb"), "a\xE2\x90\x9B[31mb");
  EXPECT_EQ(harmless("x\a\b\x7f"), "x\xE2\x90\x87\xE2\x90\x88\xE2\x90\xA1");
  EXPECT_EQ(harmless(std::string("\0", 1)), "\xE2\x90\x80");
  // C1: a terminal may take U+009B for the beginning of a sequence.
  EXPECT_EQ(harmless("\xC2\x9B[31m"), "\xEF\xBF\xBD[31m");
  EXPECT_EQ(harmless("\xFF"), "\xEF\xBF\xBD");
}

TEST(Harmless, LeavesTextAsItIs) {
  const std::string text = "Grüße,\n\t日本語 👩‍👩‍👧 é";
  EXPECT_EQ(harmless(text), text);
  EXPECT_EQ(harmless("a\r\nb"), "a\nb");
}

RC_GTEST_PROP(Harmless, LetsNoControlCharacterPass, (const std::string& bytes)) {
  const std::string shown = harmless(bytes);
  RC_ASSERT(!first_invalid_utf8(shown));
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const auto byte = static_cast<unsigned char>(shown[i]);
    RC_ASSERT(byte >= 0x20 || byte == '\n' || byte == '\t');
    RC_ASSERT(byte != 0x7F);
    if (byte == 0xC2) RC_ASSERT(static_cast<unsigned char>(shown[i + 1]) >= 0xA0);
  }
}

TEST(HarmlessJson, EscapesC1) {
  EXPECT_EQ(harmless_json("{\"a\":\"\xC2\x9B[1m\xC2\xA0\"}"), "{\"a\":\"\\u009b[1m\xC2\xA0\"}");
}

TEST(DisplayWidth, KnowsWideAndCombiningCharacters) {
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("äöü"), 3U);
  EXPECT_EQ(display_width("日本"), 4U);
  EXPECT_EQ(display_width("e\xCC\x81"), 1U);
  EXPECT_EQ(display_width(""), 0U);
}

TEST(Fit, CutsWithAnEllipsis) {
  EXPECT_EQ(fit("abcdef", 6), "abcdef");
  EXPECT_EQ(fit("abcdef", 5), "abcd…");
  EXPECT_EQ(fit("日本語", 4), "日…");
  EXPECT_EQ(fit("abc", 0), "");
}

TEST(Wrap, BreaksAtBlanks) {
  EXPECT_EQ(wrap("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrap("abcdefgh", 3), (std::vector<std::string>{"abc", "def", "gh"}));
  EXPECT_EQ(wrap("a\n\nb", 10), (std::vector<std::string>{"a", "", "b"}));
}

RC_GTEST_PROP(Wrap, NoLineIsTooLongAndNoWordIsLost, ()) {
  const auto words = *rc::gen::container<std::vector<std::string>>(
      rc::gen::nonEmpty(rc::gen::string<std::string>().as("word")));
  std::string text;
  std::string letters;
  for (const std::string& word : words) {
    for (const char c : word) {
      const char letter = static_cast<char>('a' + static_cast<unsigned char>(c) % 26);
      text.push_back(letter);
      letters.push_back(letter);
    }
    text.push_back(' ');
  }
  const auto columns = *rc::gen::inRange<std::size_t>(1, 30);
  std::string again;
  for (const std::string& line : wrap(text, columns)) {
    RC_ASSERT(display_width(line) <= columns);
    for (const char c : line) {
      if (c != ' ') again.push_back(c);
    }
  }
  RC_ASSERT(again == letters);
}

TEST(Rfc3339, ReadsZonesAndFractions) {
  const WallTime expected = std::chrono::sys_days(std::chrono::year(2026) / 1 / 2) + 3h + 4min + 5s;
  EXPECT_EQ(parse_rfc3339("2026-01-02T03:04:05Z").value(), expected);
  EXPECT_EQ(parse_rfc3339("2026-01-02 03:04:05z").value(), expected);
  EXPECT_EQ(parse_rfc3339("2026-01-02T04:34:05+01:30").value(), expected);
  EXPECT_EQ(parse_rfc3339("2026-01-01T23:04:05-04:00").value(), expected);
  EXPECT_EQ(parse_rfc3339("2026-01-02T03:04:05.1Z").value(), expected + 100ms);
  EXPECT_EQ(parse_rfc3339("2026-01-02T03:04:05.123456Z").value(), expected + 123ms);
}

TEST(Rfc3339, RefusesEverythingElse) {
  for (const char* text :
       {"", "2026", "2026-01-02", "2026-01-02T03:04:05", "2026-13-02T03:04:05Z",
        "2026-02-30T03:04:05Z", "2026-01-02T24:04:05Z", "2026-01-02T03:60:05Z",
        "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05Zx", "2026-01-02T03:04:05+1:00",
        "20-01-02T03:04:05Z", "2026-01-02T03:04:05+24:00"}) {
    EXPECT_FALSE(parse_rfc3339(text)) << text;
  }
}

TEST(Since, TakesADurationOrATime) {
  const WallTime now = std::chrono::sys_days(std::chrono::year(2026) / 1 / 2);
  EXPECT_EQ(parse_since("10m", now).value(), now - 10min);
  EXPECT_EQ(parse_since("1h30m", now).value(), now - 90min);
  EXPECT_EQ(parse_since("2026-01-01T00:00:00Z", now).value(), now - 24h);
  const auto bad = parse_since("yesterday", now);
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("neither a duration (10m"), std::string::npos);
}

TEST(Count, IsShort) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(7'620'000'000), "7.62B");
  EXPECT_EQ(format_count(494'000'000), "494M");
  EXPECT_EQ(format_count(12'300), "12.3K");
  EXPECT_EQ(counted(1, "model"), "1 model");
  EXPECT_EQ(counted(2, "model"), "2 models");
}

}  // namespace
}  // namespace berth::cli
