#include "supervisor/core/log/line_cleaner.h"

#include <gtest/gtest.h>

namespace berth::core {
namespace {

std::string cleaned(std::string_view raw) {
  std::string scratch;
  return std::string(clean_line(raw, scratch));
}

TEST(LineCleaner, L12_RemovesEscapeSequencesWhole) {
  EXPECT_EQ(cleaned("\x1b[1;35mValueError\x1b[0m: \x1b[35mbad\x1b[0m"), "ValueError: bad");
  EXPECT_EQ(cleaned("\x1b[?25la\x1b[2K\x1b[38;5;208mb\x1b[0 qc"), "abc");
  EXPECT_EQ(cleaned("\x1b]0;title; of [a] window\x07line"), "line");
  EXPECT_EQ(cleaned("\x1b]8;;https://a.example/b\x1b\\link\x1b]8;;\x1b\\ end"), "link end");
  EXPECT_EQ(cleaned("a\x1b"
                    "7b\x1b"
                    "8c\x1bMd\x1b=e"),
            "abcde");
  EXPECT_EQ(cleaned("\x1b(B\x1b[mplain"), "plain") << "what tput sgr0 writes";
}

TEST(LineCleaner, L12_EndsAnEscapeSequenceWithTheLine) {
  EXPECT_EQ(cleaned("text\x1b"), "text");
  EXPECT_EQ(cleaned("text\x1b["), "text");
  EXPECT_EQ(cleaned("text\x1b[31"), "text");
  EXPECT_EQ(cleaned("text\x1b]0;never closed"), "text");
}

TEST(LineCleaner, L12_ShowsWhatATerminalShowsAfterCarriageReturns) {
  EXPECT_EQ(cleaned("line\r"), "line");
  EXPECT_EQ(cleaned("line\r\r\r"), "line");
  EXPECT_EQ(cleaned("\r 10%\r 20%\r100%\r"), "100%");
  EXPECT_EQ(cleaned("\rFetching: 5%\x1b[K\rTraceback"), "Traceback");
  EXPECT_EQ(cleaned("\r"), "");
  EXPECT_EQ(cleaned("a\x1b[0m\r\x1b[0m"), "a") << "escapes go first";
  EXPECT_EQ(cleaned("a\r  "), "") << "blanks overwrite, too";
}

TEST(LineCleaner, L12_DropsWhatIsMalformedOrUnprintable) {
  EXPECT_EQ(cleaned(std::string_view("a\0b\x01\x7f"
                                     "c",
                                     6)),
            "abc");
  EXPECT_EQ(cleaned("a\xff\xc0\xaf"
                    "b\xe2\x82"
                    "c"),
            "abc");
  EXPECT_EQ(cleaned("\xed\xa0\x80x"), "x") << "half a surrogate pair";
  EXPECT_EQ(cleaned("a\u200bb\u202ec\u2066d\ufeff\u00ad\u0085"), "abcd");
  EXPECT_EQ(cleaned("\ufffd ü 🦅 \U0001fffe"), "\ufffd ü 🦅");
  EXPECT_EQ(cleaned("\xc3\x1b[0m\xa4"), "ä") << "what an escape sequence tore apart";
}

TEST(LineCleaner, L12_KeepsTabsAndBlanksInFrontAndNoneAtTheEnd) {
  EXPECT_EQ(cleaned("\t  a\tb \t "), "\t  a\tb");
  EXPECT_EQ(cleaned("  \xff a "), "   a");
  EXPECT_EQ(cleaned(" \t "), "");
  EXPECT_EQ(cleaned(""), "");
  EXPECT_EQ(cleaned("ends in \u200b"), "ends in");
}

TEST(LineCleaner, L12_CopiesNoLineOfPlainText) {
  const std::string raw = "0123456789 abcdefghijklmnopqrstuvwxyz ~";
  std::string scratch;
  EXPECT_EQ(clean_line(raw, scratch).data(), raw.data());
  for (std::size_t at = 0; at + 1 < raw.size(); ++at) {
    std::string changed = raw;
    changed[at] = '\x1f';
    EXPECT_EQ(clean_line(changed, scratch).size(), raw.size() - 1) << at;
    changed[at] = '\x7f';
    EXPECT_EQ(clean_line(changed, scratch).size(), raw.size() - 1) << at;
    changed[at] = '\xff';
    EXPECT_EQ(clean_line(changed, scratch).size(), raw.size() - 1) << at;
  }
}

}  // namespace
}  // namespace berth::core
