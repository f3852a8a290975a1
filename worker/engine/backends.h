#pragma once

#include <string_view>

#include "common/result.h"

namespace berth::worker {

// Loads ggml's CPU backend: of the variants in BERTH_GGML_BACKEND_DIR the best that this processor
// can run. Nothing is to be done where the backends are linked into ggml. Call once.
// Errors: kLoadFailed, names the directory.
Status load_cpu_backend();

// Loads the one backend whose devices have names like `device` ("Vulkan0": Vulkan's), if it is
// installed. Nothing happens where it is loaded already, or no backend has such names.
void load_device_backend(std::string_view device);

// Loads every backend that there is, for a list of devices.
void load_all_backends();

}  // namespace berth::worker
