#include "supervisor/memory/nvml.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

namespace berth::memory {
namespace {

enum Mode { kHealthy = 0, kSecondLost = 1, kNoInit = 2, kManyProcesses = 3, kNoOwners = 4 };

class NvmlTest : public testing::Test {
 protected:
  NvmlTest() { set(kHealthy); }
  ~NvmlTest() override { ::dlclose(library_); }

  void set(Mode mode) {
    reinterpret_cast<void (*)(int)>(::dlsym(library_, "fake_nvml_mode"))(mode);
  }
  [[nodiscard]] int running() const {
    return reinterpret_cast<int (*)()>(::dlsym(library_, "fake_nvml_running"))();
  }

  void* const library_ = ::dlopen(BERTH_FAKE_NVML, RTLD_NOW | RTLD_LOCAL);
};

TEST_F(NvmlTest, M2_ReadsDevicesAndWhoUsesThem) {
  const auto nvml = Nvml::open(BERTH_FAKE_NVML);
  ASSERT_TRUE(nvml) << nvml.error().message;
  const auto readings = (*nvml)->read();
  ASSERT_TRUE(readings) << readings.error().message;
  ASSERT_EQ(readings->size(), 2U);
  const DeviceReading& first = readings->front();
  EXPECT_EQ(first.uuid, "GPU-0");
  EXPECT_EQ(first.pci, "00000000:01:00.0");
  EXPECT_EQ(first.name, "Fake RTX");
  EXPECT_EQ(first.total, 1000U);
  EXPECT_EQ(first.used, 600U);
  ASSERT_TRUE(first.processes);
  // The first one computes and draws: it counts once.
  EXPECT_EQ(*first.processes, (std::vector<DeviceProcess>{{10, 250}, {11, 101}}));
}

TEST_F(NvmlTest, M2_IsShutDownWithItsObject) {
  {
    const auto nvml = Nvml::open(BERTH_FAKE_NVML);
    ASSERT_TRUE(nvml);
    EXPECT_EQ(running(), 1);
  }
  EXPECT_EQ(running(), 0);
}

TEST_F(NvmlTest, ADeviceThatFellOffItsBusIsLostAndTheOthersAreThere) {
  set(kSecondLost);
  const auto nvml = Nvml::open(BERTH_FAKE_NVML);
  ASSERT_TRUE(nvml);
  const auto readings = (*nvml)->read();
  ASSERT_TRUE(readings);
  ASSERT_EQ(readings->size(), 2U);
  EXPECT_FALSE(readings->front().lost);
  EXPECT_TRUE(readings->back().lost);
}

TEST_F(NvmlTest, MoreProcessesThanWereExpectedAreAllRead) {
  set(kManyProcesses);
  const auto nvml = Nvml::open(BERTH_FAKE_NVML);
  ASSERT_TRUE(nvml);
  const auto readings = (*nvml)->read();
  ASSERT_TRUE(readings);
  ASSERT_TRUE(readings->front().processes);
  EXPECT_EQ(readings->front().processes->size(), 100U);
}

TEST_F(NvmlTest, M3_MemoryWhoseOwnersAreHiddenIsOfUnknownOwners) {
  set(kNoOwners);
  const auto nvml = Nvml::open(BERTH_FAKE_NVML);
  ASSERT_TRUE(nvml);
  const auto readings = (*nvml)->read();
  ASSERT_TRUE(readings);
  EXPECT_FALSE(readings->front().processes);
}

TEST_F(NvmlTest, ADriverThatIsNotLoadedSaysSo) {
  set(kNoInit);
  const auto nvml = Nvml::open(BERTH_FAKE_NVML);
  ASSERT_FALSE(nvml);
  EXPECT_EQ(nvml.error().reason, Reason::kInternal);
  EXPECT_NE(nvml.error().message.find("Driver Not Loaded"), std::string::npos);
}

TEST_F(NvmlTest, NoLibraryIsNotFoundAndAnotherLibraryIsNone) {
  const auto none = Nvml::open("libthere-is-no-such-library.so.1");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().reason, Reason::kNotFound);
  const auto other = Nvml::open("libm.so.6");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().reason, Reason::kInternal);
}

}  // namespace
}  // namespace berth::memory
