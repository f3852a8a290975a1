#pragma once

#include <string>
#include <string_view>

namespace berth {

// Which drivers the machine's devices have, as a load's provenance names them (L19): name and
// version of the kernel's part, which the part that programs load must match. Read once, at
// berthd's start: a driver is replaced by a restart of the machine, or while nobody uses it. A
// value; nothing fails, what cannot be read is not there.
class DeviceDrivers {
 public:
  DeviceDrivers() = default;
  // Reads /proc/driver/nvidia/version, /sys/module/{amdgpu,i915,xe} and the kernel's release, which
  // stands for drivers that come with it. `root` stands before each path.
  static DeviceDrivers read(const std::string& root = "");

  // Of a device as libllama names it: "CUDA0" is NVIDIA's, "ROCm0" AMD's; one by Vulkan or SYCL may
  // be anybody's, and all drivers count. "nvidia 550.54.15"; empty: none is known.
  [[nodiscard]] std::string of(std::string_view device) const;

 private:
  std::string nvidia_;  // "nvidia 550.54.15"; empty: it is not there
  std::string amd_;
  std::string intel_;
};

}  // namespace berth
