#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "common/clock.h"
#include "supervisor/process/async.h"

namespace berth {

// Which drivers the machine's devices have, as a load's provenance names them (L19): name and
// version of the kernel's part, which the part that programs load must match. A value; nothing
// fails, what cannot be read is not known.
class DeviceDrivers {
 public:
  DeviceDrivers() = default;
  // Reads /proc/driver/nvidia/version, /sys/module/{amdgpu,i915,xe} and the kernel's release, which
  // stands for drivers that come with it. `root` stands before each path.
  static DeviceDrivers read(const std::string& root = "");

  // Of a device as libllama names it: "CUDA0" is NVIDIA's, "ROCm0" AMD's; one by Vulkan or SYCL may
  // be anybody's, and all drivers count. "nvidia 550.54.15"; empty: none is known.
  [[nodiscard]] std::string of(std::string_view device) const;

  bool operator==(const DeviceDrivers&) const = default;

 private:
  std::string nvidia_;  // "nvidia 550.54.15"; empty: it is not known
  std::string amd_;
  std::string intel_;
};

// Knows the drivers of now: a driver is replaced by a restart of the machine, or while nobody uses
// it. Core strand only; lives as long as the program.
class DriverKeeper {
 public:
  struct Parts {
    Clock& clock;
    process::RunBlocking run_blocking;
    std::function<DeviceDrivers()> read;  // blocks
    std::function<void()> on_changed;     // others than were known
  };

  // Reads them at once, so it blocks.
  explicit DriverKeeper(Parts parts) : parts_(std::move(parts)), drivers_(parts_.read()) {}
  DriverKeeper(const DriverKeeper&) = delete;
  DriverKeeper& operator=(const DriverKeeper&) = delete;
  ~DriverKeeper() = default;

  // Reads them again on the pool; nothing where that is under way.
  void look();
  [[nodiscard]] const DeviceDrivers& drivers() const { return drivers_; }

 private:
  void take(const DeviceDrivers& drivers);

  Parts parts_;
  DeviceDrivers drivers_;
  bool looking_ = false;
};

}  // namespace berth
