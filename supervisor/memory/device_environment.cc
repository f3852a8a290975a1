#include "supervisor/memory/device_environment.h"

#include <algorithm>
#include <array>

namespace berth::memory {
namespace {

// Device drivers and libllama are configured through these; an operator sets them in the unit.
constexpr std::array<std::string_view, 12> kHandedOn = {"CUDA_", "GGML_",  "NVIDIA_", "VK_",
                                                        "HIP_",  "ROCR_",  "HSA_",    "MESA_",
                                                        "LP_",   "LIBGL_", "OMP_",    "GOMP_"};

}  // namespace

bool configures_devices(std::string_view variable) {
  return std::any_of(kHandedOn.begin(), kHandedOn.end(),
                     [&](std::string_view prefix) { return variable.starts_with(prefix); });
}

std::vector<std::string> device_environment(const std::vector<std::string>& environment,
                                            bool with_vulkan) {
  std::vector<std::string> kept = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "GGML_NO_BACKTRACE=1"};
  // Vulkan's drivers are loaded by name, and load further libraries by name. With a private prefix
  // they must be its own, which no run path of ours can say. Never for another program: the prefix
  // has a C library of its own.
  if (BERTH_LLAMA_PRIVATE != 0 && with_vulkan) {
    kept.emplace_back("LD_LIBRARY_PATH=" BERTH_LLAMA_LIB_DIR);
  }
  for (const std::string& variable : environment) {
    if (configures_devices(variable) && !variable.starts_with("GGML_NO_BACKTRACE=")) {
      kept.push_back(variable);
    }
  }
  return kept;
}

}  // namespace berth::memory
