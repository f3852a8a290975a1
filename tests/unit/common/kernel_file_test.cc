#include "common/kernel_file.h"

#include <gtest/gtest.h>

#include <string>

namespace berth {
namespace {

TEST(KernelFile, IsReadWholeWhateverSizeItClaims) {
  const auto status = read_kernel_file("/proc/self/status");
  ASSERT_TRUE(status);
  EXPECT_NE(status->find("\nVmRSS:"), std::string::npos);
}

TEST(KernelFile, IsReadAsFarAsIsAskedFor) {
  EXPECT_EQ(read_kernel_file("/proc/self/status", 5), "Name:");
}

TEST(KernelFile, ThatCannotBeReadIsAbsent) {
  EXPECT_FALSE(read_kernel_file("/proc/self/no_such_file"));
  EXPECT_FALSE(read_kernel_file("/proc")) << "a directory";
}

}  // namespace
}  // namespace berth
