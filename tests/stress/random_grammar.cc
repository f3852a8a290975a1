#include "tests/stress/random_grammar.h"

#include <algorithm>
#include <vector>

#include "tests/stress/random_text.h"

namespace berth::stress {
namespace {

// Makes the rules one after the other. Unless ambiguous ones are wanted, each text and each class
// begins with a character that nothing else begins with, and each alternative begins and ends with
// a text: so whatever was read can be read in one way only.
class GrammarMaker {
 public:
  GrammarMaker(Random& random, const GrammarLimits& limits)
      : random_(random), limits_(limits), rules_(random.between(1, 6)) {}

  std::string make() {
    std::string grammar;
    for (std::uint64_t rule = 0; rule < rules_; ++rule) {
      grammar += name(rule) + " ::= " + alternatives() + "\n";
      if (random_.percent(10)) grammar += "# a comment\n";
    }
    return grammar;
  }

 private:
  static std::string name(std::uint64_t rule) {
    return rule == 0 ? "root" : "rule-" + std::to_string(rule);
  }

  // The next character; never one that has a meaning in GBNF.
  std::string character() {
    constexpr std::uint32_t kLetters = 26;
    constexpr std::uint32_t kBeyond = 0x400;
    const auto number = limits_.ambiguous ? static_cast<std::uint32_t>(random_.below(4)) : next_++;
    std::string text;
    append_character(text, number < kLetters ? 'a' + number : kBeyond + number);
    return text;
  }
  std::string literal() {
    auto text = "\"" + character();
    if (random_.percent(50)) text += one_text(random_, {"Z", " is", "\\n", "1", "日", "\\x41"});
    return text + "\"";
  }
  std::string count() {
    const auto least = random_.below(3);
    const auto bounded =
        "{" + std::to_string(least) + "," + std::to_string(least + any_size(random_, 1, 60)) + "}";
    return one_of<std::string>(random_, {"*", "+", "?", "{2}", "{1,}", bounded});
  }
  std::string item() {
    switch (random_.below(7)) {
      case 0:
        return literal();
      case 1:
        return literal() + count();
      case 2:
        return "[" + character() + "]" + count();
      case 3: {  // anything up to a character
        const auto end = character();
        return literal() + " [^" + end + "]" +
               std::string(one_text(random_, {"*", "+", "{0,40}"})) + " \"" + end + "\"";
      }
      case 4:
        if (random_.percent(20))
          return "<[" + std::to_string(random_.below(limits_.vocabulary)) + "]>";
        return "(" + literal() + " | " + literal() + ")" + count();
      default:
        return name(random_.below(rules_)) + (random_.percent(50) ? count() : std::string());
    }
  }
  std::string sequence() {
    auto text = literal();
    const auto items = random_.below(4);
    for (std::uint64_t i = 0; i < items; ++i) text += " " + item();
    return text + " " + literal();
  }
  std::string alternatives() {
    auto text = sequence();
    const auto more = random_.below(3);
    for (std::uint64_t i = 0; i < more; ++i) text += " | " + sequence();
    // So that it can end.
    return text + " | " + literal();
  }

  Random& random_;
  const GrammarLimits limits_;
  const std::uint64_t rules_;
  std::uint32_t next_ = 0;
};

}  // namespace

std::string random_grammar(Random& random, const GrammarLimits& limits) {
  return GrammarMaker(random, limits).make();
}

std::string broken_grammar(Random& random, const GrammarLimits& limits) {
  const auto good = random_grammar(random, limits);
  switch (random.below(12)) {
    case 0:
      return "";
    case 1:
      return good + "extra ::= \"a";
    case 2:
      return good + "extra ::= nobody";
    case 3:
      return good + "extra ::= extra \"a\"";
    case 4:
      return good + "extra ::= \"a\"{1,99999999}";
    case 5:
      return good + "extra ::= " + std::string(any_size(random, 101, 200'000), '(');
    case 6:
      return good + "extra ::= [a-";
    case 7:
      return "start" + good.substr(4);
    case 8:
      return good + "\xff";
    case 9:
      return good + "extra ::= ((\"a\"{1,999}){1,999}){1,999}";
    case 10:
      return good + "extra ::= (\"a\"?)*";
    default:
      return good + broken_text(random);
  }
}

}  // namespace berth::stress
