#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/v1/admin.pb.h"
#include "supervisor/cli/context.h"
#include "supervisor/cli/doctor/check.h"
#include "supervisor/core/memory/domain_table.h"

namespace berth::cli {

// What is known of the daemon, from itself or else from the configured file.
struct DaemonState {
  Checks checks;
  // The daemon's directories: name of the setting, path.
  std::vector<std::pair<std::string, std::string>> directories;
  // The path of its program; empty: not known.
  std::string program;
  // What the daemon says of its memory plan, without what its info says already; absent: it does
  // not.
  std::optional<v1::Memory> memory{};
  // Of the configured file.
  core::BudgetConfig budgets{};
};

DaemonState look_at_daemon(Context& context);

}  // namespace berth::cli
