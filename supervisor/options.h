#pragma once

#include <optional>
#include <string>

#include "common/log.h"

namespace berth {

// The command line of berthd.
struct DaemonOptions {
  std::string config_file;  // empty: the default path
  std::string demo_dir;     // absolute; empty: no demo
  LogFormat log_format = LogFormat::kLogfmt;
};

// Parses argv. Nothing where the program is to end now, with `exit_code`: 0 after --help and
// --version, 2 after a wrong use, whose message is on stderr.
std::optional<DaemonOptions> parse_options(int argc, char** argv, int& exit_code);

}  // namespace berth
