#include "supervisor/process/log_tail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "common/text.h"
#include "supervisor/process/log_cut.h"
#include "tests/unit/process/temp_dir.h"

namespace berth::process {
namespace {

using testing::append;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TempDir;

class LogTailTest : public ::testing::Test {
 protected:
  std::vector<std::string> tail(std::uint64_t from, std::size_t count) {
    auto lines = tail_lines(path_, from, count);
    if (!lines) {
      ADD_FAILURE() << lines.error().message;
      return {};
    }
    return *lines;
  }
  TempDir dir_;
  std::string path_ = dir_.file("log");
};

TEST_F(LogTailTest, TheLastLinesOldestFirst) {
  append(path_, "one\ntwo\n\n   \nthree\nfour");
  EXPECT_THAT(tail(0, 3), ElementsAre("two", "three", "four"));
  EXPECT_THAT(tail(0, 100), ElementsAre("one", "two", "three", "four"));
  EXPECT_THAT(tail(0, 0), IsEmpty());
}

TEST_F(LogTailTest, L11_OnlyWhatTheInstanceWrote) {
  append(path_, "old\nmine\n");
  EXPECT_THAT(tail(4, 10), ElementsAre("mine"));
  EXPECT_THAT(tail(9, 10), IsEmpty());
}

TEST_F(LogTailTest, L11_AtMost64KiBAndNoHalfLine) {
  append(path_, "first\n" + std::string(70'000, 'x') + "\nlast\n");
  EXPECT_THAT(tail(0, 10), ElementsAre("last"));
  append(path_, std::string(70'000, 'y'));  // one line, and its begin is out of sight
  EXPECT_THAT(tail(0, 10), IsEmpty());
}

TEST_F(LogTailTest, L16_LinesAreCarriedWithoutPathsAndControls) {
  append(path_,
         "\x1b[31mValueError\x1b[0m: bad\x07 \xe2\x80\xaeshape\tin /srv/my models/a b.gguf\r\n"
         "10 %\r50 %\r100 %\n"
         "see https://docs.example.org/x for\xff more\n");
  EXPECT_THAT(tail(0, 10),
              ElementsAre("ValueError: bad shape in <path>", "100 %", "see <path> for more"));
}

TEST_F(LogTailTest, L16_AtMost300BytesCutAtACharacter) {
  append(path_, "x" + std::string(298, '.') + "\xc3\xa4" + "tail\n");
  EXPECT_THAT(tail(0, 1), ElementsAre("x" + std::string(298, '.')));
}

TEST_F(LogTailTest, AfterACutItFindsTheInstanceAgain) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "old " + std::to_string(i) + "\n";
  const std::uint64_t start = text.size();
  append(path_, text + "mine 1\nmine 2\n");
  ASSERT_TRUE(trim_live(path_, 1000, 500)->cut);
  EXPECT_THAT(tail(start, 10), ElementsAre("mine 1", "mine 2"));
}

TEST_F(LogTailTest, L11_OnlyARegularFileIsRead) {
  EXPECT_EQ(tail_lines(path_, 0, 1).error().reason, Reason::kNotFound);
  append(dir_.file("target"), "secret\n");
  std::filesystem::create_symlink(dir_.file("target"), path_);
  EXPECT_FALSE(tail_lines(path_, 0, 1));
  ASSERT_EQ(::mkfifo(dir_.file("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(tail_lines(dir_.file("pipe"), 0, 1));
  EXPECT_FALSE(tail_lines(dir_.path(), 0, 1));
}

RC_GTEST_PROP(LogTail, L16_AnyBytesGivePrintableBoundedLines, (const std::string& bytes)) {
  const TempDir dir;
  append(dir.file("log"), bytes + "\x1b[" + bytes);
  const auto lines = tail_lines(dir.file("log"), 0, 10);
  RC_ASSERT(lines.has_value());
  for (const std::string& line : *lines) {
    RC_ASSERT(line.size() <= 300U);
    RC_ASSERT(!first_invalid_utf8(line));
    RC_ASSERT(printable_line(line, line.size()) == line);
    RC_ASSERT(line.find('\\') == std::string::npos);
    RC_ASSERT(line.find('/') == std::string::npos);
  }
}

}  // namespace
}  // namespace berth::process
