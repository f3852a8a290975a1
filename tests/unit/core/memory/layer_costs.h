#pragma once

#include <cstddef>

#include "supervisor/core/memory/cost_model.h"

namespace berth::core::testing {

// Layers of 10 bytes, the output among them; 2 for each device and 3 in the host.
inline ModelCost cost_of_layers(std::size_t layers) {
  PartCost part;
  part.host_weights = 3;
  part.layers.assign(layers, {.weights = 9, .kv = 1});
  part.device_working = 1;
  ModelCost cost;
  cost.parts = {part};
  cost.device_overhead = 1;
  return cost;
}

}  // namespace berth::core::testing
