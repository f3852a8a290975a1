#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/core/memory/domain.h"

namespace berth::core {

enum class DeviceType : std::uint8_t { kProcessor, kGpu, kIntegratedGpu, kAccelerator, kOther };

// A device as libllama lists it (`berth-worker --devices`).
struct ListedDevice {
  std::string name;         // "CUDA0": an index in it, so that it names it in this boot only
  std::string description;  // "NVIDIA GeForce RTX 4090"
  std::string pci;          // "0000:01:00.0"; empty: not on that bus, or not told
  DeviceType type = DeviceType::kOther;
  std::uint64_t total = 0;  // bytes; 0: not told
  std::uint64_t free = 0;

  bool operator==(const ListedDevice&) const = default;
};

// A device as its driver's management library knows it.
struct DriverDevice {
  std::string uuid;  // "GPU-8f6a…"
  std::string pci;   // in any of the usual forms
  std::string name;
  std::uint64_t total = 0;  // bytes

  bool operator==(const DriverDevice&) const = default;
};

// What the configuration says of budgets. Bytes; absent: auto.
struct DeviceBudget {
  std::optional<std::uint64_t> budget;
  bool own = false;  // a budget of its own for a device that shares the host's memory

  bool operator==(const DeviceBudget&) const = default;
};
struct BudgetConfig {
  std::optional<std::uint64_t> host;
  std::optional<std::uint64_t> device;          // of each that has no entry below
  std::map<std::string, DeviceBudget> devices;  // by Domain::id, or by libllama's name

  bool operator==(const BudgetConfig&) const = default;
};

// The memory domains of this machine (M1). A value.
struct DomainTable {
  Domains domains;  // the host first; `foreign` is 0
  // Where the memory of each of libllama's devices is, by its name. Two backends may list the same
  // device; one that shares the host's memory is in the host's domain.
  std::map<std::string, DomainIndex, std::less<>> by_device;
  // What of the configuration cannot be kept, one sentence each: a device that is not there, a
  // budget that is larger than what there is.
  std::vector<std::string> problems;

  [[nodiscard]] std::optional<DomainIndex> find(std::string_view id) const;
  bool operator==(const DomainTable&) const = default;
};

// `host_total`: bytes of main memory. The domains of devices are in the order of their ids, which
// are: the UUID of the driver's device at the same PCI address; else backend:description, with the
// address where two would have the same. Budgets that are not configured: 60 % of the host's
// memory, a device's less max(5 %, 512 MiB), and half of the host's for an own one (M1). An own
// budget is taken out of the host's.
DomainTable make_domain_table(std::uint64_t host_total, std::span<const ListedDevice> listed,
                              std::span<const DriverDevice> known, const BudgetConfig& budgets);

// "00000000:01:00.0" and "01:00.0" are "0000:01:00.0"; what is no PCI address is empty.
std::string normal_pci(std::string_view address);

}  // namespace berth::core
