#pragma once

#include <memory>
#include <string>
#include <vector>

#include "supervisor/catalog/config.h"
#include "supervisor/options.h"
#include "supervisor/residency/residency.h"

namespace berth {

// The configuration that these options name. Blocks on the file system.
catalog::ConfigResult read_config(const DaemonOptions& options);

// What reading the configuration again comes to.
struct ConfigReload {
  std::shared_ptr<const catalog::Config> config;  // to go on with; null: the one of before
  std::string problem;                 // why that one stays: the first problem, and how many more
  std::vector<std::string> unapplied;  // keys that take a restart
};

// Models, their settings and directories, [auth], [memory] and the waits for room are those of
// `read`; the rest of [server] stays as it is in `now`, as listeners and directories cannot be
// changed while they are used. Pure.
ConfigReload reload_config(const catalog::Config& now, catalog::ConfigResult read);

// What the residency goes by; the waits of it change with a reload (Residency::use_waits()).
residency::Limits limits_of(const catalog::Config& config);

}  // namespace berth
