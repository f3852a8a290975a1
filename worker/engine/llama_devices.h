#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "llama.h"
#include "worker/engine/engine.h"

namespace berth::worker {

// Where a model's layers go, as libllama takes it. Must outlive the load of the model.
struct Placement {
  std::vector<ggml_backend_dev_t> devices = {nullptr};  // ends with nullptr
  std::vector<float> split;  // llama_max_devices() shares; empty: by free memory
  std::int32_t layers = 0;   // -1: all
};

// Loads the backends that the settings' devices need, and no other, and finds the devices. Errors:
// permanent, where a device is not there: names it and those that are. A model is never silently
// put on the processor instead (T71).
tl::expected<Placement, LoadFailure> place(const EngineSettings& settings);

// Whether `name` is a loaded device other than the processor.
bool is_device(std::string_view name);

// All devices that ggml's backends find, as one JSON document. Loads every backend.
std::string llama_devices_json();

}  // namespace berth::worker
