#include "common/text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth {
namespace {

TEST(Utf8, CodePointsAreTakenAsTheyWereAppended) {
  const std::vector<std::uint32_t> codes = {0,      0x7F,   0x80,   0x7FF,   0x800,
                                            0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF};
  std::string text;
  for (const auto code : codes) append_utf8(text, code);
  EXPECT_EQ(first_invalid_utf8(text), std::nullopt);
  std::string_view rest = text;
  for (const auto code : codes) EXPECT_EQ(take_code_point(rest), code);
  EXPECT_TRUE(rest.empty());
}

TEST(Text, FindsTheFirstMalformedByte) {
  EXPECT_EQ(first_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("plain"), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80"), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("\xF4\x8F\xBF\xBF"), std::nullopt);  // U+10FFFF
  EXPECT_EQ(first_invalid_utf8("a\x80"), 1U);                       // lone continuation
  EXPECT_EQ(first_invalid_utf8("ab\xC3"), 2U);                      // cut
  EXPECT_EQ(first_invalid_utf8("\xC0\x80"), 0U);                    // overlong NUL
  EXPECT_EQ(first_invalid_utf8("\xC1\xBF"), 0U);
  EXPECT_EQ(first_invalid_utf8("\xE0\x9F\xBF"), 0U);      // overlong
  EXPECT_EQ(first_invalid_utf8("\xED\xA0\x80"), 0U);      // surrogate
  EXPECT_EQ(first_invalid_utf8("\xF0\x8F\xBF\xBF"), 0U);  // overlong
  EXPECT_EQ(first_invalid_utf8("\xF4\x90\x80\x80"), 0U);  // beyond U+10FFFF
  EXPECT_EQ(first_invalid_utf8("\xF5\x80\x80\x80"), 0U);
  EXPECT_EQ(first_invalid_utf8("x\xFFy"), 1U);
}

TEST(Text, PrefixCutsNoCharacter) {
  const std::string text = "a\xC3\xBC\xE2\x82\xAC\xF0\x9F\x98\x80";  // 1 + 2 + 3 + 4 bytes
  const std::vector<std::size_t> expected = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
  for (std::size_t limit = 0; limit < expected.size(); ++limit) {
    EXPECT_EQ(utf8_prefix(text, limit), expected[limit]) << limit;
  }
  EXPECT_EQ(utf8_prefix("\x80\x80\x80\x80\x80", 3), 3U);
}

TEST(Text, GrowingTextEndsWithAWholeCharacter) {
  EXPECT_EQ(utf8_complete_prefix(""), 0U);
  EXPECT_EQ(utf8_complete_prefix("abc"), 3U);
  EXPECT_EQ(utf8_complete_prefix("ab\xC3"), 2U);
  EXPECT_EQ(utf8_complete_prefix("ab\xC3\xBC"), 4U);
  EXPECT_EQ(utf8_complete_prefix("\xF0\x9F\x98"), 0U);
  EXPECT_EQ(utf8_complete_prefix("\xF0\x9F\x98\x80"), 4U);
  EXPECT_EQ(utf8_complete_prefix("a\xE2\x82"), 1U);
  // These never become a character.
  EXPECT_EQ(utf8_complete_prefix("a\xFF"), 2U);
  EXPECT_EQ(utf8_complete_prefix("\x80\x80"), 2U);
  EXPECT_EQ(utf8_complete_prefix("\xED\xA0"), 2U);
  EXPECT_EQ(utf8_complete_prefix("\xC3\xBC\xBC"), 3U);
}

TEST(Text, L16_PrintableLineDropsWhatCannotBeSeen) {
  EXPECT_EQ(printable_line("a\tb\nc", 100), "a b c");
  EXPECT_EQ(printable_line("a\x1b[31mb\x07\x7F", 100), "a[31mb");
  EXPECT_EQ(printable_line(std::string("a\0b", 3), 100), "ab");
  EXPECT_EQ(printable_line(std::string("a\xC2\x85") + "b\xC2\xADz", 100),
            "abz");  // C1, soft hyphen
  EXPECT_EQ(printable_line("x\xE2\x80\xAEy\xE2\x80\x8Bz\xE2\x81\xA6", 100),
            "xyz");                                                      // bidi, zero width
  EXPECT_EQ(printable_line("\xEF\xBB\xBFx\xEF\xBF\xBE", 100), "x");      // BOM, U+FFFE
  EXPECT_EQ(printable_line("\xEF\xB7\x90x\xF0\x9F\xBF\xBF", 100), "x");  // non-characters
  EXPECT_EQ(printable_line("\xEF\xBF\xBD", 100), "\xEF\xBF\xBD");        // U+FFFD stays
  EXPECT_EQ(printable_line("a\xFF\xC3z", 100), "az");
  EXPECT_EQ(printable_line("gr\xC3\xBC\xC3\x9F", 5), "gr\xC3\xBC");
}

RC_GTEST_PROP(Text, PrintableLineIsWellFormedAndBounded,
              (const std::string& text, std::uint8_t limit)) {
  const std::string line = printable_line(text, limit);
  RC_ASSERT(line.size() <= limit);
  RC_ASSERT(!first_invalid_utf8(line).has_value());
  RC_ASSERT(printable_line(line, limit) == line);
}

RC_GTEST_PROP(Text, PrefixesOfWellFormedTextAreWellFormed,
              (const std::vector<std::uint32_t>& seeds, std::uint8_t limit)) {
  std::string text;
  for (const std::uint32_t seed : seeds) {
    constexpr std::array kCharacters = {"a", "\xC3\xBC", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
    text += kCharacters.at(seed % kCharacters.size());
  }
  RC_ASSERT(!first_invalid_utf8(text.substr(0, utf8_prefix(text, limit))).has_value());
  const std::string cut = text.substr(0, limit);
  const std::size_t complete = utf8_complete_prefix(cut);
  RC_ASSERT(!first_invalid_utf8(cut.substr(0, complete)).has_value());
  RC_ASSERT(cut.size() - complete < 4U);
}

TEST(Text, OffersNearNames) {
  const std::vector<std::string> names = {"queue_timeout", "max_wait", "grace", "retry_grace",
                                          "log_keep",      "log_dir",  "pin",   "ttl"};
  EXPECT_EQ(nearest_names("queue_timout", names), (std::vector<std::string>{"queue_timeout"}));
  EXPECT_EQ(nearest_names("GRACE", names, 1), (std::vector<std::string>{"grace"}));
  EXPECT_EQ(nearest_names("gracee", names, 1), (std::vector<std::string>{"grace"}));
  EXPECT_EQ(nearest_names("pni", names), (std::vector<std::string>{"pin"}));
  EXPECT_EQ(nearest_names("log", names), (std::vector<std::string>{"log_dir", "log_keep"}));
  EXPECT_TRUE(nearest_names("zzzzzz", names).empty());
  EXPECT_TRUE(nearest_names("", names).empty());
  EXPECT_TRUE(nearest_names("anything", {}).empty());
}

TEST(Text, NearNamesAreFewAndNearestFirst) {
  const std::vector<std::string> names = {"qwen3-8b", "qwen3-4b", "qwen3-8b-q4", "qwen2-8b",
                                          "llama-8b"};
  const auto near = nearest_names("qwen3-8", names);
  ASSERT_EQ(near.size(), 3U);
  EXPECT_EQ(near[0], "qwen3-8b");
}

TEST(Text, JoinsNames) {
  EXPECT_EQ(join_names({}), "");
  EXPECT_EQ(join_names({"a"}), "a");
  EXPECT_EQ(join_names({"a", "b"}), "a and b");
  EXPECT_EQ(join_names({"a", "b", "c"}), "a, b and c");
}

}  // namespace
}  // namespace berth
