#include "worker/template/control_texts.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace berth::worker {
namespace {

const Marks kMarks{"1111", "2222"};

std::string marked(const ControlTexts& texts, std::string text) {
  texts.mark(text, kMarks, text.size());
  return text;
}

std::string shown(const std::vector<PromptPart>& parts) {
  std::string text;
  for (const auto& part : parts) text += part.literal ? "[" + part.text + "]" : part.text;
  return text;
}

TEST(ControlTexts, MarksTheLongest) {
  const ControlTexts texts({"<a>", "<a>b", "<", "", "</s>"});
  EXPECT_EQ(marked(texts, "x<a>bc"), "x1111<a>b2222c");
  EXPECT_EQ(marked(texts, "<a"), "1111<2222a");
  EXPECT_EQ(marked(texts, "</s><a>."), "1111</s>22221111<a>2222.");
  EXPECT_EQ(marked(texts, "plain"), "plain");
  EXPECT_FALSE(texts.occurs_in("plain"));
  EXPECT_TRUE(texts.occurs_in("x</s>"));
}

TEST(ControlTexts, MarksNoMoreThanAreAskedFor) {
  std::string text = "<a><a>x<a>";
  EXPECT_EQ(ControlTexts({"<a>"}).mark(text, kMarks, 2), 2U);
  EXPECT_EQ(text, "1111<a>22221111<a>2222x<a>");
}

TEST(ControlTexts, CutsAtMarks) {
  const ControlTexts texts({"<a>"});
  EXPECT_EQ(shown(texts.split("x1111<a>2222y<a>", kMarks)), "x[<a>]y<a>");
  EXPECT_EQ(shown(texts.split("", kMarks)), "");
  EXPECT_EQ(texts.split("", kMarks).size(), 1U);
  EXPECT_EQ(shown(texts.split("x1111<a>2222", Marks())), "x1111<a>2222");
}

// Templates cut texts ("</think>") and move the halves about.
TEST(ControlTexts, DropsMarksThatWereTornApart) {
  const ControlTexts texts({"<a>", "</t>"});
  EXPECT_EQ(shown(texts.split("x1111<a>", kMarks)), "x<a>");
  EXPECT_EQ(shown(texts.split("2222 1111 y", kMarks)), "  y");
  EXPECT_EQ(shown(texts.split("1111</t>x<a>2222", kMarks)), "</t>x<a>");
  EXPECT_EQ(shown(texts.split("1111 1111<a>22221111", kMarks)), " [<a>]");
  EXPECT_EQ(shown(texts.split("22221111<a>2222", kMarks)), "[<a>]");
}

RC_GTEST_PROP(ControlTexts, WhatIsMarkedIsCutAgain, ()) {
  const ControlTexts texts({"<a>", "<ab>", "ab", "b"});
  const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("<>abc")));
  const auto parts = texts.split(marked(texts, text), kMarks);
  std::string whole;
  for (const auto& part : parts) {
    whole += part.text;
    RC_ASSERT(part.literal == texts.occurs_in(part.text));
  }
  RC_ASSERT(whole == text);
}

}  // namespace
}  // namespace berth::worker
