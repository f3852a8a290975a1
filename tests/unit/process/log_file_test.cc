#include "supervisor/process/log_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>

#include "tests/unit/process/temp_dir.h"

namespace berth::process {
namespace {

using testing::append;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::slurp;
using ::testing::StartsWith;
using testing::TempDir;

LogHeader header() {
  return {"0198-instance",
          WallTime(std::chrono::milliseconds(1'790'000'000'123)),
          {"/usr/bin/berth-worker", "--model", "/srv/a b.gguf", ""}};
}

class LogFileTest : public ::testing::Test {
 protected:
  LogPolicy policy(std::uint64_t rotate_bytes = 1000, std::uint32_t keep = 3) {
    return {dir_.file("log"), keep, rotate_bytes};
  }
  std::set<std::string> files() {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.file("log"))) {
      names.insert(entry.path().filename());
    }
    return names;
  }
  TempDir dir_;
};

TEST_F(LogFileTest, L10_PrivateAppendedAndClosedOnExec) {
  auto log = open_log(policy(), "demo", header());
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_EQ(log->path, dir_.file("log/demo.log"));
  struct stat info {};
  ASSERT_EQ(::fstat(log->output.get(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat(dir_.file("log").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
  EXPECT_EQ(::fcntl(log->output.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  const int flags = ::fcntl(log->output.get(), F_GETFL);
  EXPECT_EQ(flags & O_APPEND, O_APPEND);
  EXPECT_EQ(flags & O_NONBLOCK, 0);
}

TEST_F(LogFileTest, HeaderNamesTimeInstanceAndCommand) {
  const auto log = open_log(policy(), "demo", header());
  ASSERT_TRUE(log);
  const std::string text = slurp(log->path);
  EXPECT_EQ(text,
            "== berth 2026-09-21T14:13:20.123Z instance=0198-instance "
            "command=/usr/bin/berth-worker --model \"/srv/a b.gguf\" \"\"\n");
  EXPECT_EQ(log->start, text.size());
}

TEST_F(LogFileTest, HeaderStaysOneLineOfBoundedLength) {
  LogHeader hostile = header();
  hostile.command = {"a\nb\x1b[31m", std::string(100'000, 'x')};
  const auto log = open_log(policy(), "demo", hostile);
  ASSERT_TRUE(log);
  const std::string text = slurp(log->path);
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  EXPECT_LE(text.size(), 4001U);
}

TEST_F(LogFileTest, TheNextInstanceAppends) {
  const auto first = open_log(policy(), "demo", header());
  ASSERT_TRUE(first);
  append(first->path, "line\n");
  const auto second = open_log(policy(), "demo", header());
  ASSERT_TRUE(second);
  EXPECT_EQ(second->start, 2 * first->start + 5);
  EXPECT_THAT(files(), ElementsAre("demo.log"));
}

TEST_F(LogFileTest, L10_RotatedBySizeAtSpawnAndSomeKept) {
  for (int i = 0; i < 6; ++i) {
    const auto log = open_log(policy(), "demo", header());
    ASSERT_TRUE(log);
    EXPECT_THAT(slurp(log->path), StartsWith("== berth"));
    append(log->path, "round " + std::to_string(i) + std::string(1000, '.'));
  }
  EXPECT_THAT(files(), ElementsAre("demo.log", "demo.log.1", "demo.log.2", "demo.log.3"));
  EXPECT_THAT(slurp(dir_.file("log/demo.log")), HasSubstr("round 5"));
  EXPECT_THAT(slurp(dir_.file("log/demo.log.1")), HasSubstr("round 4"));
  EXPECT_THAT(slurp(dir_.file("log/demo.log.3")), HasSubstr("round 2"));

  // Fewer are kept from now on: the surplus goes.
  ASSERT_TRUE(open_log(policy(1000, 1), "demo", header()));
  EXPECT_THAT(files(), ElementsAre("demo.log", "demo.log.1"));
  append(dir_.file("log/demo.log"), std::string(1000, '.'));
  ASSERT_TRUE(open_log(policy(1000, 0), "demo", header()));
  EXPECT_THAT(files(), ElementsAre("demo.log"));
}

TEST_F(LogFileTest, ALivingWriterGoesOnInItsOwnFile) {
  const auto old = open_log(policy(1), "demo", header());
  ASSERT_TRUE(old);
  const auto fresh = open_log(policy(1), "demo", header());
  ASSERT_TRUE(fresh);
  ASSERT_EQ(::write(old->output.get(), "late\n", 5), 5);
  EXPECT_THAT(slurp(fresh->path + ".1"), HasSubstr("late"));
  EXPECT_THAT(slurp(fresh->path), ::testing::Not(HasSubstr("late")));
}

TEST_F(LogFileTest, L10_LinksAndPipesAreRefused) {
  ASSERT_TRUE(open_log(policy(), "other", header()));
  append(dir_.file("target"), "precious");
  std::filesystem::create_symlink(dir_.file("target"), dir_.file("log/demo.log"));
  EXPECT_FALSE(open_log(policy(), "demo", header()));
  EXPECT_EQ(slurp(dir_.file("target")), "precious");

  ASSERT_EQ(::mkfifo(dir_.file("log/pipe.log").c_str(), 0600), 0);
  const auto pipe = open_log(policy(), "pipe", header());  // does not wait for a reader
  ASSERT_FALSE(pipe);
  EXPECT_THAT(pipe.error().message, HasSubstr("pipe.log"));
}

TEST_F(LogFileTest, L17_ADirectoryThatOthersMayWriteIsRefused) {
  std::filesystem::create_directory(dir_.file("log"));
  ASSERT_EQ(::chmod(dir_.file("log").c_str(), 0777), 0);
  const auto log = open_log(policy(), "demo", header());
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().reason, Reason::kInternal);
  EXPECT_THAT(log.error().message, HasSubstr("0700"));
}

TEST_F(LogFileTest, AFullDiskIsAnErrorWithItsCause) {
  ASSERT_TRUE(open_log(policy(), "demo", header()));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct sigaction ignore {};
  struct sigaction action_before {};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGXFSZ, &ignore, &action_before), 0);
  const rlimit small{10, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto log = open_log(policy(), "demo", header());
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_EQ(::sigaction(SIGXFSZ, &action_before, nullptr), 0);
  ASSERT_FALSE(log);
  EXPECT_THAT(log.error().message, HasSubstr("cannot be written: File too large"));
}

TEST(LogPath, UnsafeCharactersAreEncoded) {
  EXPECT_EQ(log_path("/d", "qwen3-8b_Q4.K"), "/d/qwen3-8b_Q4.K.log");
  EXPECT_EQ(log_path("/d", "../../etc/passwd"), "/d/%2E.%2F..%2Fetc%2Fpasswd.log");
  EXPECT_EQ(log_path("/d", "a b%ä"), "/d/a%20b%25%C3%A4.log");
  EXPECT_EQ(log_path("/d", ""), "/d/%-.log");
}

RC_GTEST_PROP(LogPath, IsOneShortFileNameAndDifferentModelsDiffer,
              (const std::string& a, const std::string& b)) {
  const std::string path = log_path("/d", a);
  const std::string name = path.substr(3);
  RC_ASSERT(name.find('/') == std::string::npos);
  RC_ASSERT(name.find('\0') == std::string::npos);
  RC_ASSERT(name.front() != '.');
  RC_ASSERT(name.size() < 250U);
  RC_ASSERT((log_path("/d", b) == path) == (a == b));
}

TEST(LogPath, VeryLongNamesStayApart) {
  const std::string stem(1000, '/');
  const std::string one = log_path("/d", stem + "1");
  const std::string two = log_path("/d", stem + "2");
  EXPECT_NE(one, two);
  EXPECT_LT(one.size(), 250U);
}

}  // namespace
}  // namespace berth::process
