#include "supervisor/known_architectures.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "supervisor/fd_wait.h"
#include "supervisor/process/asio_clock.h"
#include "supervisor/process/process_launcher.h"
#include "tests/unit/common/temp_dir.h"

namespace berth {
namespace {

// A program of a few lines in place of berth-worker, which notes each run.
class KnownArchitecturesTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string program = dir_.file("worker");
    std::ofstream(program) << "#!/bin/sh\necho \"$1\" >> " << dir_.file("runs") << "\n"
                           << "echo llama_model_load: noise >&2\n"
                           << "case $1 in\n"
                           << "*=good) echo 'architecture good: known' ;;\n"
                           << "*=odd) echo 'architecture odd: unknown' ;;\n"
                           << "*=old) echo 'There is no such option' >&2; exit 2 ;;\n"
                           << "esac\n";
    ASSERT_EQ(::chmod(program.c_str(), 0700), 0);
  }
  bool knows(const std::string& architecture) {
    std::optional<bool> answer;
    architectures_.ask(architecture, [&](bool known) { answer = known; });
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!answer && std::chrono::steady_clock::now() < until) {
      io_.restart();
      io_.run_for(std::chrono::milliseconds(20));
    }
    EXPECT_TRUE(answer);
    io_.restart();
    io_.poll();
    return answer.value_or(false);
  }
  [[nodiscard]] std::string runs() const {
    std::ifstream file(dir_.file("runs"));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  test::TempDir dir_;
  boost::asio::io_context io_{1};
  process::AsioClock clock_{io_};
  process::RealLauncher launcher_{io_};
  KnownArchitectures architectures_{{.clock = clock_,
                                     .launcher = launcher_,
                                     .on_readable = readable_on(io_),
                                     .program = dir_.file("worker"),
                                     .environment = {"PATH=/usr/bin:/bin"}}};
};

TEST_F(KnownArchitecturesTest, L25_WhatIsKnownIsAskedOnceAndWhatIsNotAnew) {
  EXPECT_TRUE(knows("good"));
  EXPECT_TRUE(knows("good"));
  EXPECT_FALSE(knows("odd"));
  EXPECT_FALSE(knows("odd"));
  EXPECT_EQ(runs(),
            "--knows-architecture=good\n--knows-architecture=odd\n"
            "--knows-architecture=odd\n");
}

TEST_F(KnownArchitecturesTest, L25_WhoAsksFromWithinAnAnswerIsAnsweredAnew) {
  std::optional<bool> second;
  architectures_.ask("odd", [&](bool first) {
    EXPECT_FALSE(first);
    architectures_.ask("odd", [&](bool known) { second = known; });
    EXPECT_FALSE(second) << "nothing is known of it yet";
  });
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!second && std::chrono::steady_clock::now() < until) {
    io_.restart();
    io_.run_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(second, false);
  EXPECT_EQ(runs(), "--knows-architecture=odd\n--knows-architecture=odd\n");
}

TEST_F(KnownArchitecturesTest, L25_WithoutAnAnswerNothingIsHeldAgainstIt) {
  EXPECT_TRUE(knows("old")) << "a worker that has no such option";
  EXPECT_TRUE(knows("silent"));
}

TEST_F(KnownArchitecturesTest, L25_AHostileNameIsNoArgument) {
  EXPECT_TRUE(knows("a b"));
  EXPECT_TRUE(knows("good\narchitecture good: known"));
  EXPECT_TRUE(knows(std::string(65, 'a')));
  EXPECT_TRUE(knows(""));
  EXPECT_EQ(runs(), "");
}

}  // namespace
}  // namespace berth
