#include "supervisor/named_devices.h"

#include <algorithm>

#include "supervisor/core/memory/plan_words.h"

namespace berth {
namespace {

// "CUDA0 (GPU-8f6a…)": both may stand in a configuration.
std::vector<std::string> those_there(const core::DomainTable& table, const core::Domains& now) {
  std::vector<std::string> names;
  for (const auto& [name, domain] : table.by_device) {
    if (domain >= now.size() || now[domain].lost) continue;
    const bool own = domain != core::kHostDomain && now[domain].id != name;
    names.push_back(own ? name + " (" + now[domain].id + ")" : name);
  }
  return names;
}

}  // namespace

std::optional<NamedDevice> named_device(std::string_view name, const core::DomainTable& table) {
  const auto listed = table.by_device.find(name);
  if (listed != table.by_device.end()) return NamedDevice{listed->first, listed->second};
  const auto domain = table.find(name);
  if (!domain || *domain >= table.domains.size()) return std::nullopt;
  const std::string& device = table.domains[*domain].device;
  if (device.empty()) return std::nullopt;  // the host is no device
  return NamedDevice{device, *domain};
}

std::vector<NamedDevice> named_devices(const catalog::ModelSettings& settings,
                                       const core::DomainTable& table) {
  std::vector<NamedDevice> found;
  if (settings.gpu_layers == 0) return found;
  for (const std::string& name : settings.devices) {
    auto device = named_device(name, table);
    if (!device) continue;
    if (std::ranges::find(found, device->domain, &NamedDevice::domain) == found.end()) {
      found.push_back(*std::move(device));
    }
  }
  return found;
}

std::vector<std::string> missing_devices(const catalog::ModelSettings& settings,
                                         const core::DomainTable& table, const core::Domains& now) {
  std::vector<std::string> names = settings.devices;
  const bool is_command = settings.kind == catalog::Kind::kCommand;
  if (is_command) {
    names.clear();
    for (const auto& [name, bytes] : settings.memory) names.push_back(name);
  }
  std::erase_if(names, [&](const std::string& name) {
    std::optional<core::DomainIndex> domain;
    if (const auto device = named_device(name, table)) domain = device->domain;
    if (!domain && is_command) domain = table.find(name);
    return domain && *domain < now.size() && !now[*domain].lost;
  });
  return names;
}

std::string device_problem(const catalog::ModelSettings& settings, const core::DomainTable& table,
                           const core::Domains& now) {
  const std::vector<std::string> missing = missing_devices(settings, table, now);
  if (missing.empty()) return {};
  std::string text = "Its " + core::not_there(missing);
  const std::vector<std::string> there = those_there(table, now);
  text += there.empty() ? ", and no other is known" : "; there are " + core::listed(there);
  const bool is_command = settings.kind == catalog::Kind::kCommand;
  return text + ". Correct `" + (is_command ? "memory" : "devices") +
         "`, or connect what is missing.";
}

}  // namespace berth
