#include "supervisor/memory/cgroup_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/unit/common/temp_dir.h"

namespace berth::memory {
namespace {

void write(const std::string& directory, const std::string& name, const std::string& text) {
  std::filesystem::create_directories(directory);
  std::ofstream(directory + "/" + name) << text;
}

TEST(CgroupMemory, M1_TheLowestLimitOfAGroupAndThoseAboveItCounts) {
  const test::TempDir dir;
  const std::string mount = dir.file("cgroup");
  const std::string group = mount + "/system.slice/berthd.service";

  write(mount + "/system.slice", "memory.max", "3000\n");
  write(mount + "/system.slice", "memory.stat", "anon 700\nfile 9000\nshmem 50\nanon_thp 1\n");
  write(group, "memory.max", "4000\n");

  EXPECT_EQ(read_cgroup_limit(group, mount), (CgroupLimit{3000, 750}));
  write(mount + "/system.slice", "memory.max", "max\n");
  EXPECT_EQ(read_cgroup_limit(group, mount), (CgroupLimit{4000, 0}));
  write(group, "memory.max", "max\n");
  EXPECT_FALSE(read_cgroup_limit(group, mount));
  EXPECT_FALSE(read_cgroup_limit("/nonexistent", "/nonexistent"));
  EXPECT_FALSE(read_cgroup_limit("relative", "/nonexistent"));
}

}  // namespace
}  // namespace berth::memory
