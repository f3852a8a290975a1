#include "supervisor/process/proc.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <limits>

#include "tests/unit/process/loop.h"

namespace berth::process {
namespace {

using testing::Recorder;
using testing::run_until;
using testing::shell;

TEST(Proc, ReadsThisProcess) {
  const auto stat = read_stat(::getpid());
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->parent, ::getppid());
  EXPECT_EQ(stat->group, ::getpgrp());
  EXPECT_GT(stat->start_ticks, 0U);
  EXPECT_EQ(stat->state, 'R');
}

TEST(Proc, NamesWithBlanksAndParenthesesDoNotConfuse) {
  std::array<char, 16> before{};
  ASSERT_EQ(::prctl(PR_GET_NAME, before.data()), 0);
  const auto plain = read_stat(::getpid());
  ASSERT_EQ(::prctl(PR_SET_NAME, ") Z 1 (x) 2 3"), 0);
  const auto odd = read_stat(::getpid());
  ASSERT_EQ(::prctl(PR_SET_NAME, before.data()), 0);
  ASSERT_TRUE(plain && odd);
  EXPECT_EQ(odd->start_ticks, plain->start_ticks);
  EXPECT_EQ(odd->parent, plain->parent);
}

TEST(Proc, EveryFieldIsReadFromItsPlace) {
  const std::string text =
      "77 (a) S 5 6 (b) 3) R 4 -5 6 7 8 9 10 11 12 13 100 200 300 400 18 19 20 21 22 23 24 25 26\n";
  const auto stat = parse_stat(text);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'R');
  EXPECT_EQ(stat->parent, 4);
  EXPECT_EQ(stat->group, -5);
  EXPECT_EQ(stat->cpu_ticks, 1000U);
  EXPECT_EQ(stat->threads, 20U);
  EXPECT_EQ(stat->start_ticks, 22U);
  EXPECT_EQ(stat->resident_pages, 24U);
  for (std::size_t size = 0; size < text.find(" 24 "); ++size) {
    EXPECT_FALSE(parse_stat(text.substr(0, size))) << size;
  }
  EXPECT_FALSE(
      parse_stat("1 (x) R 4 5 6 7 8 9 10 11 12 13 -1 200 300 400 18 19 20 21 22 23 24 25"));
}

TEST(Proc, MissingProcessIsNothing) {
  EXPECT_FALSE(read_stat(std::numeric_limits<pid_t>::max()));
  EXPECT_TRUE(children_of(std::numeric_limits<pid_t>::max()).empty());
}

TEST(Proc, ListsChildren) {
  boost::asio::io_context io;
  RealLauncher launcher(io);
  Recorder recorder;
  auto child = launcher.launch(shell("read line"), recorder);
  ASSERT_TRUE(child);
  const auto children = children_of(::getpid());
  EXPECT_NE(std::ranges::find(children, (*child)->pid()), children.end());
  EXPECT_EQ(read_stat((*child)->pid())->parent, ::getpid());
  (*child)->close_stdin();
  ASSERT_TRUE(run_until(io, [&] { return recorder.exit.has_value(); }));
}

TEST(Proc, BootIdIsOneWordAndStays) {
  const auto id = boot_id();
  ASSERT_TRUE(id);
  EXPECT_EQ(id->size(), 36U);
  EXPECT_EQ(*id, *boot_id());
}

}  // namespace
}  // namespace berth::process
