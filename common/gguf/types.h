#pragma once

#include <cstdint>

namespace berth::gguf {

// Elements of one block of a ggml_type: rows are multiples of it. 0: unknown type.
std::uint64_t type_block_elements(std::uint32_t type);

}  // namespace berth::gguf
