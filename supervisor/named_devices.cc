#include "supervisor/named_devices.h"

#include <algorithm>

namespace berth {

std::optional<NamedDevice> named_device(std::string_view name, const core::DomainTable& table) {
  const auto listed = table.by_device.find(name);
  if (listed != table.by_device.end()) return NamedDevice{listed->first, listed->second};
  const auto domain = table.find(name);
  if (!domain || *domain >= table.domains.size()) return std::nullopt;
  const std::string& device = table.domains[*domain].device;
  if (device.empty()) return std::nullopt;  // the host is no device
  return NamedDevice{device, *domain};
}

NamedDevices named_devices(const catalog::ModelSettings& settings, const core::DomainTable& table) {
  NamedDevices devices;
  if (settings.gpu_layers == 0) return devices;
  for (const std::string& name : settings.devices) {
    auto device = named_device(name, table);
    if (!device) {
      devices.missing.push_back(name);
    } else if (std::ranges::find(devices.found, device->domain, &NamedDevice::domain) ==
               devices.found.end()) {
      devices.found.push_back(*std::move(device));
    }
  }
  return devices;
}

}  // namespace berth
