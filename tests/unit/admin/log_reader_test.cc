#include "supervisor/admin/log_reader.h"

#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "supervisor/process/log_file.h"
#include "tests/unit/admin/harness.h"

namespace berth::admin {
namespace {

class Reader : public LogListener {
 public:
  bool on_log(std::string chunk) override {
    bytes += chunk.size();
    ++chunks;
    if (on_chunk) on_chunk();
    return room;
  }
  void on_log_end(Status status) override {
    ended = true;
    ++ends;
    if (!status) failed = status.error();
  }
  std::function<void()> on_chunk;
  std::optional<Error> failed;
  std::size_t bytes = 0;
  int chunks = 0;
  int ends = 0;
  bool room = true;
  bool ended = false;
};

class LogReaderTest : public AdminTest {
 protected:
  LogReaderTest() {
    std::string name = (std::filesystem::temp_directory_path() / "blog.XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    directory_ = name;
    auto config = std::make_shared<catalog::Config>();
    config->server.log_dir = directory_;
    state_.config = config;
  }
  ~LogReaderTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  void write_log(const std::string& text) {
    const std::string path = process::log_path(directory_, "demo");
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
  }

  std::string directory_;
};

TEST_F(LogReaderTest, ALongLogLeavesThePoolToOthersInBetween) {
  constexpr std::size_t kBytes = 2UL << 20;
  write_log(std::string(kBytes - 1, 'x') + '\n');
  const auto listener = std::make_shared<Reader>();
  int most = 0;
  state_.run_blocking = [this, &most, listener](std::function<void()> work) {
    world_.clock.post([&most, listener, work = std::move(work)] {
      const int before = listener->chunks;
      work();
      most = std::max(most, listener->chunks - before);
    });
  };
  const auto reader =
      LogReader::start(state_, {.model = "demo", .lines = 0, .caller = admin()}, listener);
  world_.clock.settle();
  EXPECT_TRUE(listener->ended);
  EXPECT_EQ(listener->bytes, kBytes);
  EXPECT_GT(listener->chunks, 16);
  EXPECT_LE(most, 4);
}

TEST_F(LogReaderTest, EndsWithTheKeyThatItWasAskedWith) {
  write_log("one line\n");
  std::function<void()> grew;
  state_.on_readable = [this, &grew](int /*fd*/, std::function<void()> call) {
    grew = std::move(call);
    return world_.clock.sleep_for(std::chrono::hours(1), [] {});
  };
  const LogAsk ask{
      .model = "demo", .lines = {}, .follow = true, .caller = with_key(core::Role::kAdmin)};
  const auto waits = std::make_shared<Reader>();
  const auto reader = LogReader::start(state_, ask, waits);
  const auto slow = std::make_shared<Reader>();
  slow->room = false;
  const auto paused = LogReader::start(state_, ask, slow);
  world_.clock.settle();
  EXPECT_EQ(waits->chunks, 1);
  EXPECT_FALSE(waits->ended);
  revoke_keys();
  ASSERT_TRUE(waits->failed);
  EXPECT_EQ(waits->failed->reason, Reason::kUnauthenticated);
  ASSERT_TRUE(slow->failed) << "whether it is read or not";
  EXPECT_EQ(slow->failed->reason, Reason::kUnauthenticated);
  paused->resume();
  world_.clock.settle();
  EXPECT_EQ(slow->ends, 1);
}

TEST_F(LogReaderTest, GoesOnWhenThereIsRoomAgain) {
  write_log(std::string((1UL << 20) - 1, 'x') + '\n');
  const auto listener = std::make_shared<Reader>();
  listener->room = false;
  const auto reader =
      LogReader::start(state_, {.model = "demo", .lines = 0, .caller = admin()}, listener);
  world_.clock.settle();
  EXPECT_EQ(listener->chunks, 1);
  reader->resume();
  world_.clock.settle();
  EXPECT_EQ(listener->chunks, 2);
  // It has room again before it has said that it has none.
  listener->on_chunk = [&reader] { reader->resume(); };
  reader->resume();
  world_.clock.settle();
  EXPECT_EQ(listener->bytes, 1UL << 20);
  EXPECT_EQ(listener->ends, 1);
}

}  // namespace
}  // namespace berth::admin
