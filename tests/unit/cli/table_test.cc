#include "supervisor/cli/format/table.h"

#include <gtest/gtest.h>

#include <sstream>

#include "supervisor/cli/format/text.h"

namespace berth::cli {
namespace {

Table example() {
  Table table({{"NAME", false, true}, {"SIZE", true}, {"PROBLEM"}});
  table.add({{"demo"}, {"1.00 MiB"}, {""}});
  table.add({{"日本"}, {"2 B"}, {"the file is truncated: needs 1234 bytes, has 1000"}});
  return table;
}

TEST(Table, AlignsByDisplayWidth) {
  EXPECT_EQ(example().render(0, false),
            "NAME      SIZE  PROBLEM\n"
            "demo  1.00 MiB\n"
            "日本       2 B  the file is truncated: needs 1234 bytes, has 1000\n");
}

TEST(Table, WrapsTheLastColumnWhereTheTerminalIsNarrow) {
  EXPECT_EQ(example().render(46, false),
            "NAME      SIZE  PROBLEM\n"
            "demo  1.00 MiB\n"
            "日本       2 B  the file is truncated: needs\n"
            "                1234 bytes, has 1000\n");
}

TEST(Table, CutsColumnsThatShrink) {
  Table table({{"MODEL", false, true}, {"STATE"}, {"PID", true}});
  table.add({{"a-model-with-a-very-long-name-indeed"}, {"ready"}, {"123"}});
  const std::string text = table.render(30, false);
  EXPECT_EQ(text, "MODEL               STATE  PID\na-model-with-a-ve…  ready  123\n");
  // Too narrow for all: the terminal wraps, nothing is lost but the name's end.
  EXPECT_NE(table.render(5, false).find("a-model-wit…"), std::string::npos);
}

TEST(Table, EveryLineFitsWhereItCan) {
  for (std::size_t width = 40; width < 90; ++width) {
    std::istringstream lines(example().render(width, false));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(display_width(line), width) << line;
    }
  }
}

TEST(Table, ColoursOnlyWhereAllowed) {
  EXPECT_EQ(styled("x", Style::kBad, true), "\x1b[31mx\x1b[0m");
  EXPECT_EQ(styled("x", Style::kBad, false), "x");
  EXPECT_EQ(styled("x", Style::kPlain, true), "x");
  EXPECT_EQ(styled("", Style::kBad, true), "");
  EXPECT_EQ(example().render(0, false).find('\x1b'), std::string::npos);
}

TEST(Table, WithoutTitlesHasNoLineOfThem) {
  Table table({{""}, {""}});
  table.add({{"ok"}, {"fine"}});
  EXPECT_EQ(table.render(0, false), "ok  fine\n");
}

}  // namespace
}  // namespace berth::cli
