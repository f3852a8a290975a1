#include <csignal>
#include <cstdio>
#include <optional>
#include <utility>

#include "common/result.h"
#include "supervisor/catalog/config.h"
#include "supervisor/config_reload.h"
#include "supervisor/daemon.h"
#include "supervisor/demo.h"
#include "supervisor/options.h"

int main(int argc, char** argv) {
  constexpr int kWrongUse = 2;
  int exit_code = 0;
  // One that comes before anybody can read the configuration again must not end the program.
  std::signal(SIGHUP, SIG_IGN);
  const std::optional<berth::DaemonOptions> options = berth::parse_options(argc, argv, exit_code);
  if (!options) return exit_code;

  const bool demo = !options->demo_dir.empty();
  if (demo) {
    if (const berth::Status ready = berth::prepare_demo(options->demo_dir); !ready) {
      std::fprintf(stderr, "berthd: %s\n", ready.error().message.c_str());
      return kWrongUse;
    }
  }
  berth::catalog::ConfigResult read = berth::read_config(*options);
  if (!read.config) {
    for (const berth::catalog::ConfigProblem& problem : read.problems) {
      std::fprintf(stderr, "%s\n", problem.to_string().c_str());
    }
    std::fprintf(stderr, "berthd: the configuration has %zu problem%s and is not used.\n",
                 read.problems.size(), read.problems.size() == 1 ? "" : "s");
    return kWrongUse;
  }
  return berth::run_daemon(*options, *std::move(read.config));
}
