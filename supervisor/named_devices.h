#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/catalog/model.h"
#include "supervisor/core/memory/domain.h"
#include "supervisor/core/memory/domain_table.h"

namespace berth {

// One of this machine's devices.
struct NamedDevice {
  std::string name;  // as libllama lists it
  core::DomainIndex domain = 0;

  bool operator==(const NamedDevice&) const = default;
};

// What the `devices` of a model are on this machine.
struct NamedDevices {
  // In the configuration's order, each domain once: of two names of one device the first.
  std::vector<NamedDevice> found;
  std::vector<std::string> missing;  // by the configuration's names
};

// The device of that name: as libllama lists it ("CUDA0"), or a domain's id, which names the same
// device after every restart. Absent: there is none.
std::optional<NamedDevice> named_device(std::string_view name, const core::DomainTable& table);

// Of settings that put no layer on devices: none.
NamedDevices named_devices(const catalog::ModelSettings& settings, const core::DomainTable& table);

}  // namespace berth
