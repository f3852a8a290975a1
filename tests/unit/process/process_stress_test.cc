// Many launches from a program in which other threads allocate, lock and make fds all the time.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <iterator>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "supervisor/process/proc.h"
#include "supervisor/process/process_launcher.h"
#include "supervisor/process/subreaper.h"
#include "tests/unit/process/loop.h"

namespace berth::process {
namespace {

using testing::Recorder;
using testing::run_until;

std::size_t open_descriptors() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

void launch_many(std::size_t total, bool use_clone3) {
  boost::asio::io_context io(1);
  RealLauncher launcher(io, {std::chrono::milliseconds(60'000), use_clone3});
  auto reaper = Subreaper::start(io, [&launcher](pid_t pid) { return launcher.owns(pid); });
  ASSERT_TRUE(reaper);
  const std::size_t before = open_descriptors();

  constexpr std::size_t kThreads = 3;
  std::vector<std::jthread> noise;
  noise.reserve(kThreads);
  const auto make_noise = [](const std::stop_token& stop) {
    std::vector<std::string> kept;
    while (!stop.stop_requested()) {
      kept.emplace_back(1000, 'x');
      if (kept.size() > 100) kept.clear();
      std::array<int, 2> ends{};
      if (::pipe(ends.data()) == 0) {  // without CLOEXEC, as a careless library would
        ::close(ends[0]);
        ::close(ends[1]);
      }
    }
  };
  for (std::size_t i = 0; i < kThreads; ++i) noise.emplace_back(make_noise);

  struct Run {
    Recorder recorder;
    std::unique_ptr<ChildProcess> child;
  };
  constexpr std::size_t kAtOnce = 8;
  std::vector<std::unique_ptr<Run>> runs;
  std::size_t ended = 0;
  for (std::size_t n = 0; n < total; ++n) {
    auto run = std::make_unique<Run>();
    run->recorder.after_exit = [&ended] { ++ended; };
    LaunchSpec spec;
    spec.program = n % 10 == 9 ? "/nonexistent" : "/bin/true";
    spec.argv = {"true"};
    auto child = launcher.launch(std::move(spec), run->recorder);
    if (n % 10 == 9) {
      ASSERT_FALSE(child);
      ++ended;
      continue;
    }
    ASSERT_TRUE(child) << child.error().message;
    run->child = std::move(*child);
    runs.push_back(std::move(run));
    ASSERT_TRUE(run_until(io, [&] { return n + 1 - ended < kAtOnce; }));
    std::erase_if(runs, [](const auto& one) {
      if (!one->recorder.exit) return false;
      EXPECT_EQ(*one->recorder.exit, core::ExitStatus(core::Exited{0}));
      return true;
    });
  }
  ASSERT_TRUE(run_until(io, [&] { return ended == total; }));
  runs.clear();
  noise.clear();  // stops and joins them
  EXPECT_EQ(open_descriptors(), before);
  ASSERT_TRUE(run_until(io, [] { return children_of(::getpid()).empty(); }));
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// To copy the page tables of a sanitizer's shadow memory takes a third of a second.
constexpr std::size_t kShare = 10;
#else
constexpr std::size_t kShare = 1;
#endif

// 2000 of each with BERTH_LONG_TESTS set, else 500 and 100.
std::size_t launches(std::size_t few) {
  constexpr std::size_t kMany = 2000;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment
  return (::getenv("BERTH_LONG_TESTS") != nullptr ? kMany : few) / kShare;
}

TEST(LauncherStress, T66_ManyLaunchesLeaveNothingBehind) {
  launch_many(launches(500), true);
}

TEST(LauncherStress, T66_ManyLaunchesWithoutClone3) {
  launch_many(launches(100), false);
}

}  // namespace
}  // namespace berth::process
