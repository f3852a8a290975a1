#include "worker/lanes/text_assembler.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "common/text.h"

namespace berth::worker {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

std::string assemble(const std::vector<std::string>& parts) {
  Utf8Assembler assembler;
  std::string out;
  for (const auto& part : parts) {
    assembler.push(part, out);
    EXPECT_FALSE(first_invalid_utf8(out).has_value());
  }
  assembler.finish(out);
  return out;
}

TEST(Utf8Assembler, NeverCutsACharacter) {
  EXPECT_EQ(assemble({"gr\xC3", "\xBC\xC3\x9F", " \xE2", "\x82", "\xAC", "\xF0\x9F", "\x9A\xA2!"}),
            "grüß €🚢!");
}

TEST(Utf8Assembler, HoldsBackOnlyWhatIsIncomplete) {
  Utf8Assembler assembler;
  std::string out;
  assembler.push("a\xE2\x82", out);
  EXPECT_EQ(out, "a");
  assembler.push("\xAC", out);
  EXPECT_EQ(out, "a€");
}

TEST(Utf8Assembler, ReplacesWhatCannotBecomeACharacter) {
  const std::string r(kReplacement);
  EXPECT_EQ(assemble({"\xFF"}), r);
  EXPECT_EQ(assemble({"a\x80z"}), "a" + r + "z");
  EXPECT_EQ(assemble({"\xC0\xAF"}), r + r);                  // overlong
  EXPECT_EQ(assemble({"\xED\xA0\x80"}), r + r + r);          // a surrogate
  EXPECT_EQ(assemble({"\xF4\x90\x80\x80"}), r + r + r + r);  // above U+10FFFF
  EXPECT_EQ(assemble({"\xE2\x82", "x"}), r + "x");           // one for the maximal part
  EXPECT_EQ(assemble({"\xE2\x82"}), r);                      // the end within a character
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto size = *rc::gen::inRange<std::size_t>(1, 5);
    parts.push_back(text.substr(at, size));
    at += size;
  }
  return parts;
}

RC_GTEST_PROP(Utf8Assembler, AnySplitGivesTheSameText, ()) {
  const auto bytes = *rc::gen::container<std::string>(rc::gen::element<char>(
      'a', 'z', '\x80', '\x9F', '\xA0', '\xBF', '\xC2', '\xE0', '\xE2', '\xED', '\xF0', '\xF4'));
  const auto whole = assemble({bytes});
  RC_ASSERT(assemble(split(bytes)) == whole);
  RC_ASSERT(!first_invalid_utf8(whole).has_value());
}

RC_GTEST_PROP(Utf8Assembler, ValidTextStaysAsItIs, ()) {
  std::string text;
  const auto characters = *rc::gen::container<std::vector<std::string>>(
      rc::gen::element<std::string>("a", "ß", "€", "漢", "🚢", "\n"));
  for (const auto& character : characters) text += character;
  RC_ASSERT(assemble(split(text)) == text);
}

struct Answer {
  std::string text;
  std::string met;
  bool operator==(const Answer&) const = default;
};

Answer match(const std::vector<std::string>& stops, const std::vector<std::string>& parts) {
  TextAssembler assembler(stops);
  Answer answer;
  for (const auto& part : parts) {
    if (assembler.push(part, answer.text)) {
      answer.met = assembler.met();
      return answer;
    }
  }
  assembler.finish(answer.text);
  answer.met = assembler.met();
  return answer;
}

TEST(StopMatcher, MeetsAStopAcrossTokens) {
  EXPECT_EQ(match({"\n\nUser:"}, {"Hi.", "\n", "\nUs", "er", ": x"}), (Answer{"Hi.", "\n\nUser:"}));
}

TEST(StopMatcher, HoldsBackOnlyWhatCouldBecomeAStop) {
  StopMatcher matcher({"END"});
  std::string out;
  EXPECT_FALSE(matcher.push("xE", out));
  EXPECT_EQ(out, "x");
  EXPECT_FALSE(matcher.push("Nx", out));
  EXPECT_EQ(out, "xENx");
  EXPECT_FALSE(matcher.push("EEN", out));
  EXPECT_EQ(out, "xENxE");
  matcher.finish(out);
  EXPECT_EQ(out, "xENxEEN");
}

TEST(StopMatcher, TheFirstThatIsCompleteWins) {
  EXPECT_EQ(match({"xaby", "ab"}, {"xaby"}), (Answer{"x", "ab"}));
  EXPECT_EQ(match({"b", "ab"}, {"xab"}), (Answer{"x", "ab"}));  // at the same byte: the longest
  EXPECT_EQ(match({"aab"}, {"aaab"}), (Answer{"a", "aab"}));    // falls back within itself
}

TEST(StopMatcher, StopsOfSeveralBytesPerCharacter) {
  EXPECT_EQ(match({"€!"}, {"5 \xE2\x82", "\xAC", "!"}), (Answer{"5 ", "€!"}));
  EXPECT_EQ(match({"€!"}, {"5 €", "?"}), (Answer{"5 €?", ""}));
}

TEST(StopMatcher, AStopCanEndTheVeryEnd) {
  // The last, incomplete character becomes U+FFFD, which is the stop text here.
  EXPECT_EQ(match({std::string(kReplacement)}, {"a\xE2"}),
            (Answer{"a", std::string(kReplacement)}));
}

// The plain definition: the stop that ends first, of those the longest.
Answer reference(const std::vector<std::string>& stops, const std::string& text) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::string longest;
    for (const auto& stop : stops) {
      if (stop.size() <= end && text.compare(end - stop.size(), stop.size(), stop) == 0 &&
          stop.size() > longest.size()) {
        longest = stop;
      }
    }
    if (!longest.empty()) return {text.substr(0, end - longest.size()), longest};
  }
  return {text, ""};
}

RC_GTEST_PROP(StopMatcher, AnySplitGivesTheSameAnswer, ()) {
  const auto letter = rc::gen::element<char>('a', 'b', 'c');
  const auto text = *rc::gen::container<std::string>(letter);
  auto stops = *rc::gen::container<std::vector<std::string>>(
      rc::gen::nonEmpty(rc::gen::container<std::string>(letter)));
  stops.resize(std::min<std::size_t>(stops.size(), 16));
  const auto expected = reference(stops, text);
  RC_ASSERT(match(stops, {text}) == expected);
  RC_ASSERT(match(stops, split(text)) == expected);
}

// No text is held back longer than it could become a stop.
RC_GTEST_PROP(StopMatcher, SendsAllThatIsCertain, ()) {
  const auto letter = rc::gen::element<char>('a', 'b');
  const auto text = *rc::gen::container<std::string>(letter);
  const std::vector<std::string> stops = {"aabab", "bbb"};
  StopMatcher matcher(stops);
  std::string out;
  if (matcher.push(text, out)) return;
  const auto held = text.substr(out.size());
  RC_ASSERT(held.empty() || std::any_of(stops.begin(), stops.end(), [&](const std::string& stop) {
              return stop.starts_with(held);
            }));
}

}  // namespace
}  // namespace berth::worker
