#include "supervisor/catalog/directory_watch.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <filesystem>
#include <string>

#include "tests/unit/catalog/scratch_dir.h"

namespace berth::catalog {
namespace {

namespace fs = std::filesystem;

class Watching : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_.make_dir("models/sub");
    dir_.make_dir("elsewhere");
  }

  DirectoryWatch open() {
    const ConfigResult result = parse_config(
        "[models]\ndirs = [\"models\", \"missing\"]\n[model.x]\npath = \"elsewhere/x.bin\"\n",
        dir_ / "berth.toml");
    auto watch = DirectoryWatch::open(result.config.value());
    EXPECT_TRUE(watch) << watch.error().message;
    return std::move(*watch);
  }

  // inotify reports within the call that causes the event, so nothing has to be waited for.
  static bool readable(const DirectoryWatch& watch) {
    pollfd wait{watch.fd(), POLLIN, 0};
    return ::poll(&wait, 1, 0) == 1;
  }

  ScratchDir dir_;
};

TEST_F(Watching, L23_SeesFilesComeChangeAndGo) {
  DirectoryWatch watch = open();
  EXPECT_FALSE(readable(watch));
  EXPECT_FALSE(watch.drain());

  const std::string path = dir_.write("models/a.gguf", "1");
  EXPECT_TRUE(readable(watch));
  EXPECT_TRUE(watch.drain());
  EXPECT_FALSE(watch.drain());

  dir_.write("models/a.gguf", "22");
  EXPECT_TRUE(watch.drain());
  fs::rename(path, dir_ / "models/b.gguf");
  EXPECT_TRUE(watch.drain());
  fs::rename(dir_ / "models/b.gguf", dir_ / "outside.gguf");
  EXPECT_TRUE(watch.drain());
  fs::create_symlink(dir_ / "outside.gguf", dir_ / "models/link.gguf");
  EXPECT_TRUE(watch.drain());
  fs::permissions(dir_ / "models/link.gguf", fs::perms::owner_read);
  fs::remove(dir_ / "models/link.gguf");
  EXPECT_TRUE(watch.drain());
}

TEST_F(Watching, L23_SeesSubDirectories) {
  DirectoryWatch watch = open();
  dir_.write("models/sub/a.gguf", "1");
  EXPECT_TRUE(watch.drain());
  dir_.make_dir("models/new");
  EXPECT_TRUE(watch.drain());
  // The watch that is opened for the scan sees into the new one.
  watch = open();
  dir_.write("models/new/b.gguf", "1");
  EXPECT_TRUE(watch.drain());
}

TEST_F(Watching, L23_SeesConfiguredFiles) {
  DirectoryWatch watch = open();
  dir_.write("elsewhere/x.bin", "1");
  EXPECT_TRUE(watch.drain());
}

TEST_F(Watching, PassesOverWhatDoesNotMatter) {
  DirectoryWatch watch = open();
  dir_.write("models/notes.txt", "1");
  dir_.write("models/a.gguf.part", "1");
  dir_.write("elsewhere/other.bin", "1");
  dir_.make_dir("elsewhere/folder");
  EXPECT_TRUE(readable(watch));
  EXPECT_FALSE(watch.drain());
  EXPECT_FALSE(readable(watch));
}

TEST_F(Watching, SeesADirectoryGo) {
  DirectoryWatch watch = open();
  fs::rename(dir_ / "models", dir_ / "moved");
  EXPECT_TRUE(watch.drain());
}

TEST_F(Watching, AFloodIsAChange) {
  DirectoryWatch watch = open();
  for (int i = 0; i < 300; ++i) dir_.write("models/a.gguf", "1");
  EXPECT_TRUE(watch.drain());
}

}  // namespace
}  // namespace berth::catalog
