#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace berth::catalog {

// A directory of its own for one test; gone with it.
class ScratchDir {
 public:
  ScratchDir() {
    std::string name = "/tmp/berth-cat-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;
  ~ScratchDir() {
    std::error_code ignored;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(std::string_view name) const {
    return path_ + "/" + std::string(name);
  }

  // Writes a file, making the directories above it, and returns its path.
  std::string write(std::string_view name, std::string_view text) const {
    std::string path = *this / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  std::string make_dir(std::string_view name) const {
    std::string path = *this / name;
    std::filesystem::create_directories(path);
    return path;
  }

 private:
  std::string path_;
};

// For tests of permissions: root may read every file, so become somebody else for a while.
class NotRoot {
 public:
  NotRoot() {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0) changed_ = ::seteuid(kNobody) == 0;
  }
  NotRoot(const NotRoot&) = delete;
  NotRoot& operator=(const NotRoot&) = delete;
  ~NotRoot() {
    if (changed_) {
      EXPECT_EQ(::seteuid(0), 0);
    }
  }
  [[nodiscard]] static bool is_so() { return ::geteuid() != 0; }

 private:
  bool changed_ = false;
};

}  // namespace berth::catalog
