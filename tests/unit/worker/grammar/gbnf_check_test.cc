#include "worker/grammar/gbnf_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/worker/grammar/example_grammars.h"

namespace berth::worker {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(std::string_view grammar) {
  const auto checked = check_gbnf(grammar);
  if (checked) return "taken";
  EXPECT_EQ(checked.error().reason, Reason::kInvalidArgument);
  return checked.error().message;
}

std::string message_of(const Status& checked) {
  return checked ? "" : checked.error().message;
}

TEST(GbnfCheck, TakesOrdinaryGrammars) {
  for (const auto& [name, grammar] : test::kExampleGrammars) {
    const auto checked = check_gbnf(grammar);
    EXPECT_TRUE(checked) << name << ": " << message_of(checked);
  }
}

TEST(GbnfCheck, TakesEveryFormOfTheLanguage) {
  for (const std::string grammar : {
           "root ::= \"a\"",
           "root ::= \"\\\"\\\\\\n\\r\\t\\x41\\u00e4\\U0001F600\"",
           "root ::= [a-zA-Z_0-9] [^\\]\\[\\\\] [-a] [a-] [\\-a] [あ-ん]",
           "root ::= . | \"\" | <[12]> | !<[0]> | <|im_end|> !<think>",
           "root ::= a* b+ c? d{2} e{2,} f{0,3}\na::=\"a\"\nb::=\"b\"\nc::=\"c\"\nd::=\"d\"\n"
           "e::=\"e\"\nf::=\"f\"",
           "# first\nroot ::= ( # inner\n  \"a\" |\n  \"b\"\n)+ # last\n\n",
           "root ::=\n  \"a\" |\n  \"b\"\r\nx ::= \"y\"\r\n",
           "root ::= (\"a\"*)* (ws)*\nws ::= \" \"?",
           "root ::= \"a\"{1999} \"b\"{0,2000} \"c\"{0} \"d\" {1, 2}",
           "root ::= \"(\" root \")\" | root2\nroot2 ::= \"x\" root?",
       }) {
    EXPECT_EQ(refusal(grammar), "taken") << grammar;
  }
}

TEST(GbnfCheck, NamesTheLineOfASyntaxError) {
  EXPECT_THAT(refusal("root ::= a\na := \"x\""), AllOf(HasSubstr("line 2"), HasSubstr("`::=`")));
  EXPECT_THAT(refusal("root ::= \"a\n"), HasSubstr("end of a literal"));
  EXPECT_THAT(refusal("root ::= [a"), HasSubstr("end of a character class"));
  EXPECT_THAT(refusal("root ::= []"), HasSubstr("is empty"));
  EXPECT_THAT(refusal("root ::= [z-a]"), HasSubstr("before its begin"));
  EXPECT_THAT(refusal("root ::= (\"a\"\n\n"), HasSubstr("`)` for the `(` of line 1"));
  EXPECT_THAT(refusal("root ::= \"a\")"), HasSubstr("end of the line"));
  EXPECT_THAT(refusal("root ::= \"\\q\""), HasSubstr("escape"));
  EXPECT_THAT(refusal("root ::= \"\\u12\""), HasSubstr("4 hexadecimal digits"));
  EXPECT_THAT(refusal("root ::= \"\\U00110000\""), HasSubstr("above"));
  EXPECT_THAT(refusal("root ::= *"), HasSubstr("nothing before"));
  EXPECT_THAT(refusal("root ::= \"\"*"), HasSubstr("nothing before"));
  EXPECT_THAT(refusal("root ::= \"a\"{0}*"), HasSubstr("nothing before"));
  EXPECT_THAT(refusal("root ::= \"a\"{,3}"), HasSubstr("a number"));
  EXPECT_THAT(refusal("root ::= \"a\"{2"), HasSubstr("`}`"));
  EXPECT_THAT(refusal("root ::= <[99999999999]>"), HasSubstr("token number"));
  EXPECT_THAT(refusal("root ::= <end"), HasSubstr("end of a token"));
  EXPECT_THAT(refusal("root_a ::= \"a\""), HasSubstr("line 1"));
  EXPECT_THAT(refusal("root ::= \"a\"\nroot ::= \"b\""),
              AllOf(HasSubstr("line 2"), HasSubstr("already defined in line 1")));
}

TEST(GbnfCheck, NamesMissingRules) {
  EXPECT_THAT(refusal("root ::= a\n\na ::= bee\n"), AllOf(HasSubstr("line 3"), HasSubstr("`bee`")));
  EXPECT_THAT(refusal("start ::= \"a\""), HasSubstr("no rule `root`"));
  EXPECT_THAT(refusal(""), HasSubstr("no rule `root`"));
}

TEST(GbnfCheck, RefusesLeftRecursionWithItsCycle) {
  EXPECT_THAT(refusal("root ::= root \"a\" | \"b\""), HasSubstr("`root` -> `root`"));
  EXPECT_THAT(refusal("root ::= a\na ::= b \"x\"\nb ::= c | \"y\"\nc ::= a"),
              HasSubstr("`a` -> `b` -> `c` -> `a`"));
  EXPECT_THAT(refusal("root ::= \"s\" a\na ::= ws a \"x\" | \"y\"\nws ::= blank\nblank ::= \" \"?"),
              HasSubstr("`a` -> `a`"));
  EXPECT_THAT(refusal("root ::= (\"\" | \"x\") (root)"), HasSubstr("`root` -> `root`"));
  // libllama finds no fault in this one, and is left without a way to go on.
  EXPECT_THAT(refusal("root ::= b root\nb ::= c\nc ::= \"\""), HasSubstr("left recursion"));
}

TEST(GbnfCheck, RefusesEndlessNothing) {
  EXPECT_THAT(refusal("root ::= ws* \"x\"\nws ::= | \" \""), HasSubstr("may be empty"));
  EXPECT_THAT(refusal("root ::= \"a\"**"), HasSubstr("may be empty"));
}

TEST(GbnfCheck, BoundsRepetitions) {
  EXPECT_THAT(refusal("root ::= \"a\"{2001}"), HasSubstr("limit of 2000"));
  EXPECT_THAT(refusal("root ::= \"a\"{0,1000000000}"), HasSubstr("limit of 2000"));
  EXPECT_THAT(refusal("root ::= \"a\"{99999999999999999999}"), HasSubstr("too large"));
  EXPECT_THAT(refusal("root ::= \"a\"{3,2}"), HasSubstr("maximum below its minimum"));
  EXPECT_THAT(refusal("root ::= ((\"a\"{1,1000}){1,1000}){1,1000}"), HasSubstr("limit of 2000"));
  // Named rules do not multiply in libllama's count, but what is written out does.
  EXPECT_THAT(refusal("root ::= a{1000}\na ::= \"0123456789\"{1000}"), HasSubstr("taken"));
  std::string many = "root ::= ";
  for (int i = 0; i < 1'000; ++i) many += "\"a\"{1999}";
  EXPECT_THAT(refusal(many), HasSubstr("500000 elements"));
  many = "root ::= ";
  for (int i = 0; i < 100; ++i) many += "\"a\"{0,1999}";
  EXPECT_THAT(refusal(many), HasSubstr("50000 rules"));
}

TEST(GbnfCheck, BoundsSizeAndNesting) {
  EXPECT_THAT(refusal("root ::= \"a\" #" + std::string(GbnfBounds::kClientBytes, 'x')),
              HasSubstr("at most 262144"));
  EXPECT_EQ(refusal("root ::= " + std::string(100, '(') + "\"a\"" + std::string(100, ')')),
            "taken");
  EXPECT_THAT(refusal("root ::= " + std::string(101, '(') + "\"a\"" + std::string(101, ')')),
              HasSubstr("deeper than 100"));
  EXPECT_THAT(refusal("root ::= " + std::string(100'000, '(')), HasSubstr("deeper than 100"));
}

// An error travels in a header of the call's end, which has a few kilobytes.
TEST(GbnfCheck, BoundsNamesAndWhatErrorsShowOfThem) {
  const std::string long_name(GbnfBounds::kNameBytes, 'n');
  EXPECT_EQ(refusal("root ::= " + long_name + "\n" + long_name + " ::= \"a\""), "taken");
  for (const std::string use :
       {"root ::= \"a\"\nn", "root ::= \"a\"\nb ::= n", "root ::= (\"a\" | n", "root ::= n"}) {
    const auto why = refusal(use + std::string(GbnfBounds::kClientBytes / 2, 'n'));
    EXPECT_THAT(why, AllOf(HasSubstr("nnn`… has 13107"), HasSubstr("at most 256"))) << use;
    EXPECT_LT(why.size(), 300U);
  }
  const auto name = [&](int which) { return std::to_string(which) + long_name.substr(2); };
  std::string cycle = "root ::= " + name(0) + "\n";
  for (int i = 0; i < 30; ++i) cycle += name(i) + " ::= " + name((i + 1) % 30) + "\n";
  EXPECT_THAT(refusal(cycle), HasSubstr("left recursion"));
  EXPECT_LT(refusal(cycle).size(), 1'000U);
  EXPECT_LT(refusal("root ::= " + long_name).size(), 300U);
  EXPECT_LT(refusal("root ::= " + long_name + "\n" + long_name + " ::= (\"a\"*)**").size(), 300U);
}

TEST(GbnfCheck, BoundsWaysToBegin) {
  std::string doubling = "root ::= r0\n";
  for (int i = 0; i < 60; ++i) {
    const auto next = "r" + std::to_string(i + 1);
    doubling += "r" + std::to_string(i) + " ::= " + next + " | " + next + "\n";
  }
  EXPECT_THAT(refusal(doubling + "r60 ::= \"a\""), HasSubstr("more than 4096 ways"));

  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 3'000; ++i) {
    chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "\n";
  }
  EXPECT_THAT(refusal(chain + "r3000 ::= \"a\""), HasSubstr("chain of more than 2000"));

  std::string optional = "root ::= \"x\"";
  for (int i = 0; i < 3'000; ++i) optional += " \"a\"?";
  EXPECT_THAT(refusal(optional), HasSubstr("more than 4096 ways"));

  std::string words = "root ::= \"w0\"";
  for (int i = 1; i < 4'000; ++i) words += " | \"w" + std::to_string(i) + "\"";
  EXPECT_EQ(refusal(words), "taken");
}

// A class costs its ranges, and one that excludes every character has none.
TEST(GbnfCheck, ClassesThatExcludeEverythingAreEmpty) {
  const std::string nothing = R"([^\x00-\U0010FFFF])";
  EXPECT_THAT(refusal("root ::= \"a\"\nx ::= " + nothing),
              AllOf(HasSubstr("line 2"), HasSubstr("a character class is empty")));
  EXPECT_THAT(refusal("root ::= [^]"), HasSubstr("a character class is empty"));
  std::string many = "root ::= \"a\"";
  for (int i = 0; i < 1'000; ++i) many += nothing + "{2000}";
  EXPECT_THAT(refusal(many), HasSubstr("a character class is empty"));
}

// Each rule learns from the one after it that it may be empty.
TEST(GbnfCheck, LongChainsOfEmptyRulesAreFoundInTime) {
  std::string grammar = "root ::= \"x\" ";
  for (int i = 0; i < 1'000; ++i) grammar += "r" + std::to_string(i) + " ";
  grammar += "\n";
  for (int i = 0; i < 9'000; ++i) {
    grammar += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "\n";
  }
  EXPECT_THAT(refusal(grammar + "r9000 ::="), HasSubstr("chain of more than 2000"));
}

TEST(GbnfCheck, RefusesWhatIsNotText) {
  EXPECT_THAT(refusal("root ::= \"a\"\nx ::= \"\xC3\x28\""),
              AllOf(HasSubstr("line 2"), HasSubstr("UTF-8")));
  EXPECT_THAT(refusal(std::string("root ::= \"a\0b\"", 14)), HasSubstr("NUL"));
}

}  // namespace
}  // namespace berth::worker
