#include "supervisor/memory/device_list.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::memory {
namespace {

TEST(DeviceList, M1_ReadsWhatTheWorkerPrints) {
  const auto devices = parse_device_list(
      R"({"devices":[{"name":"CUDA0","description":"RTX","type":"gpu","id":"0000:01:00.0",)"
      R"("free_bytes":7,"total_bytes":9},{"name":"CPU","description":"a processor","type":"cpu",)"
      R"("id":"","free_bytes":1,"total_bytes":18446744073709551615}]})");
  ASSERT_TRUE(devices) << devices.error().message;
  ASSERT_EQ(devices->size(), 2U);
  EXPECT_EQ(devices->front(),
            (core::ListedDevice{"CUDA0", "RTX", "0000:01:00.0", core::DeviceType::kGpu, 9, 7}));
  EXPECT_EQ(devices->back().type, core::DeviceType::kProcessor);
  EXPECT_EQ(devices->back().total, UINT64_MAX);
}

TEST(DeviceList, SaysWhatIsWrong) {
  for (const char* text : {"", "{", "[]", R"({"devices":1})", R"({"devices":[1]})",
                           R"({"devices":[{"name":""}]})", R"({"devices":[]}x)"}) {
    const auto devices = parse_device_list(text);
    ASSERT_FALSE(devices) << text;
    EXPECT_EQ(devices.error().reason, Reason::kInternal);
  }
  EXPECT_TRUE(parse_device_list(R"({"devices":[]})"));
}

TEST(DeviceList, TakesNumbersThatMakeNoSenseAsUnknown) {
  const auto devices =
      parse_device_list(R"({"devices":[{"name":"X0","total_bytes":-5,"free_bytes":"9"}]})");
  ASSERT_TRUE(devices);
  EXPECT_EQ(devices->front().total, 0U);
  EXPECT_EQ(devices->front().free, 0U);
  EXPECT_EQ(devices->front().type, core::DeviceType::kOther);
}

TEST(DeviceList, IsFoundInWhatTheWorkerPrinted) {
  EXPECT_FALSE(find_device_list("ggml: nothing\n"));
  EXPECT_TRUE(find_device_list("x\n{\"devices\":[]}\ny"));
}

}  // namespace
}  // namespace berth::memory
