#pragma once

#include <string>
#include <vector>

#include "supervisor/catalog/model.h"
#include "supervisor/core/ledger/provenance.h"
#include "supervisor/device_drivers.h"

namespace berth {

// What a load of the model depends on, as the catalogue knows it (L19); no I/O. `environment` is
// berthd's own; `program`: the files that a command was last seen to be started with
// (ProgramWatch); null: not known. Of a split model the first file stands for all: its size is
// that of all together, its time that of the youngest. The memory budget is not known here.
core::Provenance load_provenance(const catalog::Model& model,
                                 const std::vector<std::string>& environment,
                                 const std::vector<core::ProgramFile>* program = nullptr,
                                 const DeviceDrivers& drivers = {});

}  // namespace berth
