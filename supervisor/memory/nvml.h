#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "supervisor/memory/device_reading.h"

namespace berth::memory {

// The library of NVIDIA's management library that a driver brings.
inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

// What NVIDIA's driver says of its devices, by NVML, which is loaded at run time and makes no
// device context, so that an idle machine stays idle (M2). Every call may hang with the driver: to
// be used on a thread that may. One thread at a time.
// Source of the calls and structures: NVML API Reference Guide,
// https://docs.nvidia.com/deploy/nvml-api/.
class Nvml {
 public:
  // Errors: kNotFound where there is no such library; kInternal where it is not usable, with why.
  static Result<std::unique_ptr<Nvml>> open(const std::string& library = kNvmlLibrary);
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml();

  // Every device, by its index. One that has fallen off its bus is `lost`. Errors: kInternal.
  [[nodiscard]] Result<std::vector<DeviceReading>> read() const;

 private:
  struct Calls;
  explicit Nvml(std::unique_ptr<Calls> calls);

  const std::unique_ptr<Calls> calls_;
};

}  // namespace berth::memory
