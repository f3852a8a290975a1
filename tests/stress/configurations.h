#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "tests/stress/client.h"

namespace berth::stress {

// A model and how its worker is started.
struct Configuration {
  std::string name;
  std::string model;  // a file
  std::vector<std::string> arguments;
  // Questions; the answers of models with random weights are still empty: the worker alone gives
  // them.
  std::vector<Canary> canaries;
};

// All of them; their files are written into `directory`, which must be there.
// Errors: kInternal.
Result<std::vector<Configuration>> all_configurations(const std::string& directory);

}  // namespace berth::stress
