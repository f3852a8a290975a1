#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace berth::memory {

// One process's memory on a device, bytes.
struct DeviceProcess {
  pid_t pid = 0;  // as the driver counts processes, which may be another namespace than ours
  std::uint64_t bytes = 0;

  bool operator==(const DeviceProcess&) const = default;
};

// A device as its driver describes it at one moment; bytes.
struct DeviceReading {
  std::string uuid;  // "GPU-8f6a…"; empty: not told
  std::string pci;   // "00000000:01:00.0"
  std::string name;
  std::uint64_t total = 0;
  std::uint64_t used = 0;  // by everybody
  // Absent: the driver does not say whose it is.
  std::optional<std::vector<DeviceProcess>> processes;
  bool lost = false;  // it is listed and does not answer

  bool operator==(const DeviceReading&) const = default;
};

}  // namespace berth::memory
