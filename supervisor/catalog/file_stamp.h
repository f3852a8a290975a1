#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "supervisor/catalog/model.h"

// Numbers that change when a file is another one, or is written to. For one run of the program.
// Everything here blocks on the file system.
namespace berth::catalog {

// `value` added to what `seed` stands for.
std::uint64_t mix_stamp(std::uint64_t seed, std::uint64_t value);

// Of device, inode, mode, size and times; 0 where the file is not there.
std::uint64_t file_stamp(const std::string& path);
// Of all of them, in their order.
std::uint64_t files_stamp(const std::vector<std::string>& paths);

// The files that a load reads beside the model's own: adapters, draft, chat template.
std::vector<std::string> companions_of(const ModelSettings& settings);

}  // namespace berth::catalog
