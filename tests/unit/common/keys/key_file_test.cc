#include "common/keys/key_file.h"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/common/temp_dir.h"

namespace berth::keys {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string hash(char digit) {
  return std::string(64, digit);
}

class KeyFileTest : public testing::Test {
 protected:
  void write(const std::string& text, mode_t mode = 0600) {
    std::ofstream(path_) << text;
    EXPECT_EQ(::chmod(path_.c_str(), mode), 0);
  }
  std::string read() {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }
  mode_t mode() {
    struct stat info {};
    EXPECT_EQ(::stat(path_.c_str(), &info), 0);
    return info.st_mode & 07777U;
  }
  static Status add(const std::string& path, const std::string& name, bool create = true) {
    const auto key = make_key();
    return change_key_file(path, create, [&](KeyList& list) {
      return list.add({name, KeyRole::kClient, "", hash_of(*key)});
    });
  }

  test::TempDir dir_;
  std::string path_ = dir_.path() + "/keys";
};

TEST_F(KeyFileTest, IsMadeForItsOwnerAlone) {
  ASSERT_TRUE(add(path_, "alice"));
  EXPECT_EQ(mode() & 0137U, 0U) << "at most the group reads it besides";
  const auto file = read_key_file(path_);
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->list.keys().size(), 1U);
  EXPECT_THAT(file->warning, IsEmpty());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_.path()), {}), 1)
      << "no scratch file stays";
}

TEST_F(KeyFileTest, KeepsItsModeAndLinks) {
  write("# mine\n", 0640);
  const std::string link = dir_.path() + "/link";
  std::filesystem::create_symlink(path_, link);
  ASSERT_TRUE(add(link, "alice"));
  EXPECT_EQ(mode(), 0640U);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_THAT(read(), HasSubstr("# mine\nalice:client::"));
}

TEST_F(KeyFileTest, IsNotMadeUnlessItShallBe) {
  const Status status = add(path_, "alice", false);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().reason, Reason::kNotFound);
  EXPECT_THAT(status.error().message, HasSubstr(path_));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(KeyFileTest, LinkToNothingIsRefusedAtOnce) {
  std::filesystem::create_symlink(dir_.path() + "/nothing", path_);
  const Status status = add(path_, "alice");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().reason, Reason::kInvalidArgument);
  EXPECT_THAT(status.error().message, HasSubstr("a link to nothing"));
  EXPECT_FALSE(std::filesystem::exists(dir_.path() + "/nothing"));
}

TEST_F(KeyFileTest, RootHearsOfAFileThatTheServiceCannotRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes files for others";
  write("# none\n", 0600);
  const std::string note = note_on_readers(path_);
  EXPECT_THAT(note, HasSubstr("chmod 0640"));
  const bool has_group =
      ::getgrnam("berth") != nullptr;  // NOLINT(concurrency-mt-unsafe): one thread
  EXPECT_EQ(note.find("chgrp berth") != std::string::npos, has_group) << note;
  ASSERT_EQ(::chown(path_.c_str(), 1, static_cast<gid_t>(-1)), 0);
  EXPECT_THAT(note_on_readers(path_), IsEmpty()) << "it belongs to somebody";
}

TEST_F(KeyFileTest, StaysAsItIsWhenTheChangeIsRefused) {
  const std::string text = "alice:client::" + hash('a') + "\n";
  write(text);
  ASSERT_FALSE(add(path_, "alice"));
  EXPECT_EQ(read(), text);
  write("nonsense\n");
  const Status broken = add(path_, "bob");
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message, HasSubstr(path_ + ":1: expected name:role"));
  EXPECT_EQ(read(), "nonsense\n");
}

TEST_F(KeyFileTest, IsRefusedWhereEverybodyMayWrite) {
  write("alice:admin::" + hash('a') + "\n", 0602);
  const auto file = read_key_file(path_);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr("chmod o-w"));
  write("alice:admin::" + hash('a') + "\n", 0644);
  const auto open = read_key_file(path_);
  ASSERT_TRUE(open);
  EXPECT_THAT(open->warning, HasSubstr("chmod o-r"));
}

TEST_F(KeyFileTest, MustBeAFileOfABoundedSize) {
  const auto folder = read_key_file(dir_.path());
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.error().message, HasSubstr("not a regular file"));
  write(std::string(KeyList::kMaxBytes + 1, '#'));
  const auto large = read_key_file(path_);
  ASSERT_FALSE(large);
  EXPECT_THAT(large.error().message, HasSubstr("larger than"));
}

// Each change reads what the one before it wrote, and a reader never sees a part of a file.
TEST_F(KeyFileTest, LosesNoneOfManyChangesAtOnce) {
  constexpr int kWriters = 4;
  constexpr int kEach = 10;
  ASSERT_TRUE(add(path_, "first"));
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      for (int i = 0; i < kEach; ++i) {
        const std::string name = "k" + std::to_string(writer) + "." + std::to_string(i);
        const Status added = add(path_, name);
        EXPECT_TRUE(added) << added.error().message;
        EXPECT_TRUE(read_key_file(path_));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(read_key_file(path_)->list.keys().size(), 1U + kWriters * kEach);
}

}  // namespace
}  // namespace berth::keys
