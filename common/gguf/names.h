#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::gguf {

// A shard's file name, taken apart: "PREFIX-00002-of-00003.gguf".
struct ShardName {
  std::string_view prefix;   // into the name that was given
  std::uint32_t number = 0;  // 1 to count
  std::uint32_t count = 0;
};

// Nothing where `file_name` is not that of a shard.
std::optional<ShardName> parse_shard_name(std::string_view file_name);

std::string shard_name(std::string_view prefix, std::uint32_t number, std::uint32_t count);

}  // namespace berth::gguf
