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

// The device of that name: as libllama lists it ("CUDA0"), or a domain's id, which names the same
// device after every restart. Absent: there is none.
std::optional<NamedDevice> named_device(std::string_view name, const core::DomainTable& table);

// What the `devices` of a model are on this machine, as far as they are there: in the
// configuration's order, each domain once, of two names of one device the first. Of settings that
// put no layer on devices: none.
std::vector<NamedDevice> named_devices(const catalog::ModelSettings& settings,
                                       const core::DomainTable& table);

// What the settings name that is not there, or that is lost in `now`, by the configuration's names:
// of `devices`, and of a command's `memory`.
std::vector<std::string> missing_devices(const catalog::ModelSettings& settings,
                                         const core::DomainTable& table, const core::Domains& now);

// Why a model with these settings can be put nowhere (M17), with the devices that are there and
// what to do; one sentence. Empty: nothing of that kind is in its way.
std::string device_problem(const catalog::ModelSettings& settings, const core::DomainTable& table,
                           const core::Domains& now);

}  // namespace berth
