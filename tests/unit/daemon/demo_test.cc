#include "supervisor/demo.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace berth {
namespace {

namespace fs = std::filesystem;

class DemoTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/berth-demo-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path root_;
};

TEST_F(DemoTest, MakesTheFoldersAndKeepsWhatIsThere) {
  const fs::path dir = root_ / "a" / "b";
  ASSERT_TRUE(prepare_demo(dir.string()));
  EXPECT_TRUE(fs::is_directory(dir / "models"));
  EXPECT_TRUE(fs::is_regular_file(dir / "berth.toml"));
  std::ofstream(dir / "berth.toml") << "# mine\n";
  ASSERT_TRUE(prepare_demo(dir.string()));
  std::string line;
  std::ifstream(dir / "berth.toml") >> line >> line;
  EXPECT_EQ(line, "mine");
}

TEST_F(DemoTest, AFolderThatOthersMayWriteIsRefused) {
  ASSERT_TRUE(prepare_demo(root_.string()));
  fs::permissions(root_ / "models", fs::perms::others_write, fs::perm_options::add);
  const Status status = prepare_demo(root_.string());
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find((root_ / "models").string()), std::string::npos)
      << status.error().message;
}

TEST_F(DemoTest, LinksAreNotWrittenThrough) {
  const fs::path dir = root_ / "demo";
  fs::create_directory(dir);
  fs::permissions(dir, fs::perms::owner_all);
  fs::create_symlink(root_ / "elsewhere", dir / "berth.toml");
  ASSERT_TRUE(prepare_demo(dir.string()));
  EXPECT_FALSE(fs::exists(root_ / "elsewhere"));
  EXPECT_TRUE(fs::is_symlink(dir / "berth.toml"));
}

TEST_F(DemoTest, FilesArePrivateAndNothingIsLeftBeside) {
  ASSERT_TRUE(prepare_demo(root_.string()));
  EXPECT_EQ(fs::status(root_ / "berth.toml").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  for (const auto& file : fs::directory_iterator(root_ / "models")) {
    EXPECT_EQ(file.path().filename(), "demo.gguf");
    EXPECT_EQ(file.status().permissions(), fs::perms::owner_read | fs::perms::owner_write);
  }
}

TEST_F(DemoTest, AFileInTheWayIsNamed) {
  std::ofstream(root_ / "file") << "x";
  const Status status = prepare_demo((root_ / "file").string());
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find((root_ / "file").string()), std::string::npos)
      << status.error().message;
}

}  // namespace
}  // namespace berth
