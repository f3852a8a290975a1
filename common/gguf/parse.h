#pragma once

#include <cstdint>
#include <string_view>

#include "common/gguf/byte_reader.h"
#include "common/gguf/gguf.h"

namespace berth::gguf {

// read_header() on any source of `file_bytes` bytes; errors begin with `file_name`. A source that
// fails is kInternal.
Result<Header> parse_header(ByteSource& source, std::uint64_t file_bytes,
                            std::string_view file_name);

}  // namespace berth::gguf
