#include <gtest/gtest.h>
#include <signal.h>

#include <boost/asio/io_context.hpp>
#include <random>
#include <string>

#include "supervisor/process/process_launcher.h"
#include "supervisor/store/database.h"
#include "tests/unit/process/loop.h"
#include "tests/unit/process/temp_dir.h"
#include "tests/unit/store/failure_records.h"

namespace berth::store {
namespace {

// Twenty times: a process writes without end and is killed at an arbitrary moment. Everything that
// it was told to be kept is there, and the file is sound.
TEST(RealStore, KillAtAnyMomentLosesNothingThatWasAnswered) {
  const testing::TempDir dir;
  const std::string path = dir.file("state.db");
  boost::asio::io_context io;
  process::RealLauncher launcher(io, {std::chrono::milliseconds(60'000), true});
  std::minstd_rand random(20261129);
  std::uint64_t last = 0;
  for (int round = 0; round < 20; ++round) {
    testing::Recorder recorder;
    process::LaunchSpec spec;
    spec.program = BERTH_STORE_WRITER;
    spec.argv = {"store_test_writer", path, std::to_string(last)};
    auto writer = launcher.launch(std::move(spec), recorder);
    ASSERT_TRUE(writer) << writer.error().message;
    const std::size_t lines = 1 + random() % 30;
    ASSERT_TRUE(testing::run_until(
        io, [&] { return recorder.lines.size() >= lines || recorder.exit.has_value(); }));
    (*writer)->signal_group(SIGKILL);
    ASSERT_TRUE(testing::run_until(io, [&] { return recorder.exit.has_value(); }));
    ASSERT_EQ(core::to_string(*recorder.exit), "SIGKILL");
    const std::uint64_t answered = std::stoull(recorder.lines.back());

    auto opened = Database::open(path, testing::at_ms(1));
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->moved_aside, "") << opened->damage;
    last = *opened->database->last_sequence();
    EXPECT_GE(last, answered);
    EXPECT_LE(opened->database->loads("m", 1000)->size(), 200U);
    EXPECT_EQ(opened->database->processes()->size(), 7U);
    EXPECT_LE(opened->database->failures("m", 1000)->size(), 200U);
    const auto standing = opened->database->standing_failures();
    ASSERT_EQ(standing->size(), 1U);
    const auto number = static_cast<std::uint64_t>(standing->front().started.time_since_epoch() /
                                                   std::chrono::seconds(1));
    EXPECT_GE(number, answered);
    EXPECT_EQ(standing->front(), testing::full_failure(number, "m"));
  }
}

}  // namespace
}  // namespace berth::store
