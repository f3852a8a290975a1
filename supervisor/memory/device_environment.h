#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth::memory {

// What programs that use devices have in their environment ("NAME=value"). Pure.

// Whether a device driver or libllama reads this variable ("NAME=value" or "NAME").
bool configures_devices(std::string_view variable);

// The whole environment of berth-worker, made from that of the program that starts it: what a
// device driver or libllama reads is handed on (VK_DRIVER_FILES, GGML_VK_VISIBLE_DEVICES, CUDA_…),
// everything else is not. With Vulkan it gets LD_LIBRARY_PATH where libllama lies in a private
// prefix.
std::vector<std::string> device_environment(const std::vector<std::string>& environment,
                                            bool with_vulkan);

// The same for `berth-worker --devices`, which lists all devices that there are.
inline std::vector<std::string> listing_environment(const std::vector<std::string>& environment) {
  return device_environment(environment, true);
}

}  // namespace berth::memory
