#include "supervisor/admin/log_reader.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
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
    return true;
  }
  void on_log_end(Status /*status*/) override { ended = true; }
  std::size_t bytes = 0;
  int chunks = 0;
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
  std::string directory_;
};

TEST_F(LogReaderTest, ALongLogLeavesThePoolToOthersInBetween) {
  constexpr std::size_t kBytes = 2UL << 20;
  const std::string path = process::log_path(directory_, "demo");
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << std::string(kBytes - 1, 'x') << '\n';
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

}  // namespace
}  // namespace berth::admin
