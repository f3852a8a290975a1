#pragma once

#include <iosfwd>
#include <string_view>
#include <vector>

#include "supervisor/core/memory/cost_model.h"
#include "tests/models/random_model.h"

namespace berth::worker {

// A model that is made, and how it is served.
struct CostCase {
  std::string_view name;
  test_models::ModelOptions model;
  core::ServeShape serve = {};
  std::string_view kv_type = "f16";
  bool draft = false;
  bool adapter = false;
};

void PrintTo(const CostCase& one, std::ostream* out);

// As small as it can be and still say something: some layers, a real vocabulary.
test_models::ModelOptions sized(std::string_view architecture,
                                test_models::TensorType type = test_models::TensorType::kF16);

// Every kind of attention and memory, of weights and of settings that the cost model knows of.
std::vector<CostCase> cost_cases();

}  // namespace berth::worker
