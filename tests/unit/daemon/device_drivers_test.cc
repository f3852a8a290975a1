#include "supervisor/device_drivers.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/catalog/model.h"
#include "supervisor/load_provenance.h"
#include "tests/simulation/sim_clock.h"

namespace berth {
namespace {

class DeviceDriversTest : public ::testing::Test {
 protected:
  DeviceDriversTest() {
    std::string pattern = "/tmp/berth-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~DeviceDriversTest() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  std::string root_;
};

TEST_F(DeviceDriversTest, L19_NvidiasVersionIsTold) {
  write("/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Thu Feb 22 01:44:30 UTC 2024\n"
        "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n");
  EXPECT_EQ(DeviceDrivers::read(root_).of("CUDA0"), "nvidia 550.54.15");
  write("/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n");
  const DeviceDrivers open = DeviceDrivers::read(root_);
  EXPECT_EQ(open.of("CUDA1"), "nvidia 570.86.15");
  EXPECT_EQ(open.of("Vulkan0"), "nvidia 570.86.15");
  EXPECT_EQ(open.of("ROCm0"), "");
  EXPECT_EQ(open.of("CPU"), "");
}

TEST_F(DeviceDriversTest, L19_DriversThatComeWithTheKernelAreNamedWithIt) {
  write("/sys/module/amdgpu/version", "6.3.6\n");
  write("/sys/module/xe/refcnt", "0\n");
  const DeviceDrivers drivers = DeviceDrivers::read(root_);
  EXPECT_TRUE(drivers.of("ROCm0").starts_with("amdgpu 6.3.6, kernel ")) << drivers.of("ROCm0");
  const std::string any = drivers.of("Vulkan0");
  EXPECT_NE(any.find("; xe, kernel "), std::string::npos) << any;
  EXPECT_EQ(drivers.of("CUDA0"), "");
}

TEST_F(DeviceDriversTest, L19_AMachineWithoutHasNone) {
  EXPECT_EQ(DeviceDrivers::read(root_).of("CUDA0"), "");
  EXPECT_EQ(DeviceDrivers::read(root_).of("Vulkan0"), "");
}

TEST_F(DeviceDriversTest, L19_L23_AnotherDriverIsAnotherProvenance) {
  catalog::Model model;
  model.settings.devices = {"CUDA0"};
  const auto with = [&](const std::string& version) {
    write("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX  " + version + "  x\n");
    return load_provenance(model, {}, nullptr, DeviceDrivers::read(root_));
  };
  const core::Provenance before = with("550.54.15");
  EXPECT_FALSE(core::moved_field(before, with("550.54.15")));
  const auto moved = core::moved_field(before, with("570.86.15"));
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->field, core::ProvenanceField::kDevices);
  EXPECT_NE(core::to_string(*moved).find("nvidia 570.86.15"), std::string::npos);
}

TEST_F(DeviceDriversTest, L23_ADriverThatIsReplacedIsSeenAtTheNextLook) {
  sim::SimClock clock;
  std::vector<std::function<void()>> pool;
  int changes = 0;
  write("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX  550.54.15  x\n");
  DriverKeeper keeper{
      {.clock = clock,
       .run_blocking = [&pool](std::function<void()> work) { pool.push_back(std::move(work)); },
       .read = [this] { return DeviceDrivers::read(root_); },
       .on_changed = [&changes] { ++changes; }}};
  const auto look = [&] {
    keeper.look();
    keeper.look();
    EXPECT_EQ(pool.size(), 1U);
    for (const auto& work : std::exchange(pool, {})) work();
    clock.settle();
  };
  look();
  EXPECT_EQ(changes, 0);
  write("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX  570.86.15  x\n");
  EXPECT_EQ(keeper.drivers().of("CUDA0"), "nvidia 550.54.15");
  look();
  EXPECT_EQ(changes, 1);
  EXPECT_EQ(keeper.drivers().of("CUDA0"), "nvidia 570.86.15");
}

TEST_F(DeviceDriversTest, L23_ADriverThatCannotBeReadLiftsNothing) {
  catalog::Model model;
  model.settings.devices = {"CUDA0"};
  const core::Provenance unread = load_provenance(model, {}, nullptr, DeviceDrivers::read(root_));
  write("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX  550.54.15  x\n");
  const core::Provenance read = load_provenance(model, {}, nullptr, DeviceDrivers::read(root_));
  EXPECT_FALSE(core::moved_field(unread, read));
  EXPECT_FALSE(core::moved_field(read, unread));
}

}  // namespace
}  // namespace berth
