#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/stress/configurations.h"
#include "tests/stress/random_call.h"
#include "tests/stress/traffic.h"

namespace berth::stress {

struct RunSettings {
  std::uint64_t seed = 1;
  std::uint64_t seconds = 10;
  std::uint64_t threads = 4;
  bool ambiguous_grammars = false;
  std::vector<std::string> wrapper;  // a program with arguments that starts the worker
  std::optional<Place> only;
};

struct RunResult {
  std::uint64_t problems = 0;
  bool died = false;
  Counts counts;
};

// One life of a worker under random calls: load, calls for so long, quiet, drain, end. Prints what
// is wrong as soon as it is, the worker's memory every 30 s, and the numbers at the end.
RunResult run_worker(const Configuration& configuration, const RunSettings& settings);

void print_counts(const Counts& counts);

}  // namespace berth::stress
