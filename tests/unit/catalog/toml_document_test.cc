#include "supervisor/catalog/toml_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace berth::catalog {
namespace {

using ::testing::HasSubstr;

TEST(TomlDocument, GivesTheLineOfEachKeyAndElement) {
  const auto root = parse_toml("a = 1\n\n[b]\nc = [\n  \"x\",\n  \"y\"]\n[d.\"e f\"]\ng.h = 2\n");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->find("a")->line, 1U);
  const TomlNode* c = root->find("b")->find("c");
  EXPECT_EQ(c->line, 4U);
  ASSERT_EQ(c->items.size(), 2U);
  EXPECT_EQ(c->items[0].line, 5U);
  EXPECT_EQ(c->items[1].line, 6U);
  const TomlNode* e = root->find("d")->find("e f");
  EXPECT_EQ(e->line, 7U);
  EXPECT_EQ(e->find("g")->find("h")->line, 8U);
}

TEST(TomlDocument, KeepsTheOrderOfTheFile) {
  const auto root = parse_toml("z = 1\na = 2\nm = 3\n");
  ASSERT_TRUE(root);
  std::string order;
  for (const TomlEntry& entry : root->entries) order += entry.key;
  EXPECT_EQ(order, "zam");
}

TEST(TomlDocument, DescribesWhatWasFound) {
  const auto root = parse_toml(
      "a = 5\nb = 1.5\nc = true\nd = \"x\\ny\"\ne = []\nf = {}\ng = 2024-05-06\nh = 07:08:09\n");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->find("a")->describe(), "the integer 5");
  EXPECT_EQ(root->find("b")->describe(), "the number 1.5");
  EXPECT_EQ(root->find("c")->describe(), "the boolean true");
  EXPECT_EQ(root->find("d")->describe(), "the string \"x y\"");
  EXPECT_EQ(root->find("e")->describe(), "a list");
  EXPECT_EQ(root->find("f")->describe(), "a table");
  EXPECT_EQ(root->find("g")->describe(), "the date or time 2024-05-06");
  EXPECT_EQ(root->find("h")->describe(), "the date or time 07:08:09");
}

TEST(TomlDocument, NamesTheLineOfASyntaxError) {
  const auto root = parse_toml("a = 1\nb = \n");
  ASSERT_FALSE(root);
  EXPECT_EQ(root.error().line, 2U);
  EXPECT_FALSE(root.error().message.empty());
}

TEST(TomlDocument, RefusesADuplicateKey) {
  const auto root = parse_toml("a = 1\nb = 2\na = 3\n");
  ASSERT_FALSE(root);
  EXPECT_EQ(root.error().line, 3U);
  EXPECT_THAT(root.error().message, HasSubstr("redefine"));
}

TEST(TomlDocument, RefusesInvalidUtf8WithLineAndByte) {
  const auto root = parse_toml("a = 1\nb = \"\xff\"\n");
  ASSERT_FALSE(root);
  EXPECT_EQ(root.error().line, 2U);
  EXPECT_THAT(root.error().message, HasSubstr("not valid UTF-8 at byte 11"));
}

TEST(TomlDocument, RefusesNul) {
  const auto root = parse_toml(std::string_view("a = 1\nb\0 = 2\n", 13));
  ASSERT_FALSE(root);
  EXPECT_EQ(root.error().line, 2U);
  EXPECT_THAT(root.error().message, HasSubstr("NUL"));
}

TEST(TomlDocument, RefusesMoreThanOneMebibyte) {
  const auto root = parse_toml(std::string(kMaxConfigBytes + 1, '#'));
  ASSERT_FALSE(root);
  EXPECT_THAT(root.error().message, HasSubstr("1048577 bytes"));
}

TEST(TomlDocument, RefusesDeeplyDottedKeysInsteadOfExhaustingTheStack) {
  std::string text = "a";
  for (int i = 0; i < 400'000; ++i) text += ".a";
  const auto root = parse_toml(text + " = 1\n");
  ASSERT_FALSE(root);
  EXPECT_EQ(root.error().line, 1U);
  EXPECT_THAT(root.error().message, HasSubstr("256 dots"));
}

TEST(TomlDocument, SurvivesTheDeepestNestingThatItTakes) {
  std::string dotted = "a";
  for (std::size_t i = 0; i < kMaxDotsPerLine; ++i) dotted += ".a";
  std::string text = "x = ";
  for (int i = 0; i < 7; ++i) text += "[\n{" + dotted + " = ";
  text += "1";
  for (int i = 0; i < 7; ++i) text += "}\n]";
  EXPECT_TRUE(parse_toml(text + "\n"));
  EXPECT_FALSE(parse_toml("x = " + std::string(100'000, '[')));
}

TEST(TomlDocument, CutsListsThatAreTooLong) {
  std::string text = "a = [";
  for (std::size_t i = 0; i < kMaxListElements + 100; ++i) text += "1,";
  const auto root = parse_toml(text + "]\n");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->find("a")->items.size(), kMaxListElements + 1);
}

TEST(TomlDocument, TakesAnEmptyTextAndAByteOrderMark) {
  EXPECT_TRUE(parse_toml(""));
  const auto root = parse_toml(
      "\xef\xbb\xbf"
      "a = 1\r\n");
  ASSERT_TRUE(root);
  EXPECT_NE(root->find("a"), nullptr);
}

TEST(TomlDocument, TakesTextBeyondAsciiInStringsAndComments) {
  const auto root = parse_toml(R"toml(# Grüße, € and "
a = "Größe 🙂"  # straße
b = 'Größe\n'
c = """
für \
   über\u00e4"""""
d = '''
für\
'über''''
"schlüssel" = "\"ü\\"
'größe' = ""
)toml");
  ASSERT_TRUE(root) << root.error().line << ": " << root.error().message;
  EXPECT_EQ(root->find("a")->text, "Größe 🙂");
  EXPECT_EQ(root->find("b")->text, "Größe\\n");
  EXPECT_EQ(root->find("c")->text, "für überä\"\"");
  EXPECT_EQ(root->find("d")->text, "für\\\n'über'");
  EXPECT_EQ(root->find("schlüssel")->text, "\"ü\\");
  EXPECT_EQ(root->find("größe")->line, 11U);
}

TEST(TomlDocument, NamesACharacterThatIsNotAscii) {
  const struct {
    const char* text;
    std::uint32_t line;
    const char* says;
  } cases[] = {
      {"a = 1\nb = “x”\n", 2, "the character '“' stands outside of quotes"},
      {"a = 1\n\xc6\x8b", 2, "the character 'Ƌ'"},
      {"größe = 1\n", 1, "the character 'ö'"},
      {"a =\xe2\x80\x8b 1\n", 1, "an invisible character"},
      {"a = 1 ü\n", 1, "the character 'ü'"},
      {"a = \"\\ü\"\n", 1, "escape"},
      {"a = \"\"\"\\ü\"\"\"\n", 1, ""},
  };
  for (const auto& wrong : cases) {
    const auto root = parse_toml(wrong.text);
    ASSERT_FALSE(root) << wrong.text;
    EXPECT_EQ(root.error().line, wrong.line) << wrong.text;
    EXPECT_THAT(root.error().message, HasSubstr(wrong.says)) << wrong.text;
  }
}

TEST(TomlDocument, AnUnfinishedTextIsAnErrorAndNoCrash) {
  for (const char* text :
       {"[\n", "[", "[[\n", "[a.\n", "a.\n", "a = [\n", "a = {\n", "\"", "'''"}) {
    EXPECT_FALSE(parse_toml(text)) << text;
  }
}

TEST(TomlQuote, GivesAStringThatReadsBack) {
  std::string all;
  for (char c = 1; c < 127; ++c) all += c;
  all += "\x7f äöü €";
  const auto root = parse_toml("a = " + toml_quote(all) + "\n" + toml_key(all) + " = 1\n");
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_EQ(root->find("a")->text, all);
  EXPECT_NE(root->find(all), nullptr);
  EXPECT_EQ(toml_key("bare-Key_1"), "bare-Key_1");
  EXPECT_EQ(toml_key("a.b"), "\"a.b\"");
  EXPECT_EQ(toml_key(""), "\"\"");
}

}  // namespace
}  // namespace berth::catalog
