#pragma once

#include <cstdint>
#include <vector>

#include "common/gguf/gguf.h"
#include "common/gguf/input.h"

namespace berth::gguf {

// Reads `count` entries of the tensor table; each is checked by itself (type, shape, size).
// `count` need not be checked before.
Result<std::vector<Tensor>> read_tensors(const Input& input, std::uint64_t count);

// Checks the tensors against each other and the file: no name twice, aligned, no overlap, none
// beyond the end. `data_offset` is that of the data section.
Status check_tensors(const Input& input, const std::vector<Tensor>& tensors,
                     std::uint64_t alignment, std::uint64_t data_offset);

}  // namespace berth::gguf
