#pragma once

#include "supervisor/catalog/config.h"
#include "supervisor/options.h"

namespace berth {

// Runs berthd with this configuration until it is told to stop. Main thread; returns the exit
// status: 0 stopped as told, 1 could not start. What went wrong is on standard error.
int run_daemon(const DaemonOptions& options, catalog::Config config);

}  // namespace berth
