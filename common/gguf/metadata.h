#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/gguf/gguf.h"
#include "common/gguf/input.h"

namespace berth::gguf {

using Metadata = std::map<std::string, Value, std::less<>>;

// Reads `count` keys with their values. `count` need not be checked before.
Result<Metadata> read_metadata(const Input& input, std::uint64_t count);

}  // namespace berth::gguf
