#include "supervisor/core/redact.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::core {
namespace {

TEST(Redact, L16_KeepsALineWithoutPaths) {
  EXPECT_EQ(carried_text("unknown model architecture: 'zebra'"),
            "unknown model architecture: 'zebra'");
}

TEST(Redact, L16_ReplacesAPathByOneWord) {
  EXPECT_EQ(carried_text("execve /opt/berth/berth-worker: No such file or directory"),
            "execve <path> No such file or directory");
}

TEST(Redact, L16_LeaksNoWordOfAPathWithBlanks) {
  EXPECT_EQ(carried_text("cannot open /home/eva/My Secret Models/tax return.gguf now"),
            "cannot open <path> now");
  EXPECT_EQ(carried_text("cannot open '/home/eva/My Secret Models/tax return' now"),
            "cannot open <path> now");
  EXPECT_EQ(carried_text("copy /a/b to C:\\c d failed"), "copy <path> d failed");
}

TEST(Redact, L16_DropsWhatATerminalWouldObey) {
  EXPECT_EQ(carried_text("  bad\x07 magic\tcharacters \n"), "bad magic characters");
  EXPECT_EQ(carried_text(""), "");
  EXPECT_EQ(carried_text(" \n "), "");
}

TEST(Redact, L16_CutsAtACharacter) {
  const std::string line(299, 'x');
  EXPECT_EQ(carried_text(line + "ä").size(), 299U);
  EXPECT_EQ(carried_text(line + "yz").size(), 300U);
  EXPECT_EQ(carried_text("abcdef", 3), "abc");
}

}  // namespace
}  // namespace berth::core
