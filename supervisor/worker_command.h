#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/uuid.h"
#include "supervisor/catalog/model.h"

namespace berth {

// How a worker is started: the one place that turns a model's settings into a command line, for
// every path that loads a model (T90).

// Where an instance listens: below `run_dir`, in a folder that only berth may enter.
std::string worker_socket(const std::string& run_dir, const Uuid& instance);
// The folder of these sockets.
std::string worker_directory(const std::string& run_dir);
// Bytes that worker_socket() adds to run_dir.
std::size_t worker_socket_suffix_bytes();

// argv of berth-worker at `program` for one instance.
std::vector<std::string> worker_arguments(const std::string& program, const catalog::Model& model,
                                          const Uuid& instance, const std::string& socket);

// Further ones for its first load under a provenance (L6).
std::vector<std::string> first_load_arguments();

// Whether a device driver or libllama reads this variable ("NAME=value" or "NAME").
bool configures_devices(std::string_view variable);

// The whole environment of a worker, made from berthd's own `environment` ("NAME=value"): what a
// device driver or libllama reads is handed on (VK_DRIVER_FILES, GGML_VK_VISIBLE_DEVICES, CUDA_…),
// everything else is not. A model on a Vulkan device gets LD_LIBRARY_PATH where libllama lies in a
// private prefix.
std::vector<std::string> worker_environment(const std::vector<std::string>& environment,
                                            const catalog::ModelSettings& settings);

// The same for a worker that lists all devices that there are.
std::vector<std::string> listing_environment(const std::vector<std::string>& environment);

}  // namespace berth
