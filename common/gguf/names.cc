#include "common/gguf/names.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdio>

#include "common/gguf/gguf.h"

namespace berth::gguf {
namespace {

constexpr std::string_view kExtension = ".gguf";
constexpr std::string_view kOf = "-of-";
constexpr std::size_t kDigits = 5;

std::optional<std::uint32_t> five_digits(std::string_view text) {
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

std::optional<ShardName> parse_shard_name(std::string_view file_name) {
  constexpr std::size_t kTail = 1 + kDigits + kOf.size() + kDigits + kExtension.size();
  if (file_name.size() <= kTail) return std::nullopt;
  ShardName shard;
  shard.prefix = file_name.substr(0, file_name.size() - kTail);
  std::string_view tail = file_name.substr(shard.prefix.size());
  if (tail.front() != '-' || tail.substr(1 + kDigits, kOf.size()) != kOf ||
      tail.substr(kTail - kExtension.size()) != kExtension) {
    return std::nullopt;
  }
  const auto number = five_digits(tail.substr(1, kDigits));
  const auto count = five_digits(tail.substr(1 + kDigits + kOf.size(), kDigits));
  if (!number || !count || *number < 1 || *number > *count) return std::nullopt;
  shard.number = *number;
  shard.count = *count;
  return shard;
}

std::string shard_name(std::string_view prefix, std::uint32_t number, std::uint32_t count) {
  std::array<char, 48> tail{};
  const int length = std::snprintf(tail.data(), tail.size(), "-%05u-of-%05u.gguf", number, count);
  return std::string(prefix) + std::string(tail.data(), static_cast<std::size_t>(length));
}

bool is_later_shard(std::string_view file_name) {
  const auto shard = parse_shard_name(file_name);
  return shard && shard->number > 1;
}

std::string model_name(std::string_view file_name) {
  if (const auto shard = parse_shard_name(file_name)) return std::string(shard->prefix);
  if (file_name.size() > kExtension.size() && file_name.ends_with(kExtension)) {
    file_name.remove_suffix(kExtension.size());
  }
  return std::string(file_name);
}

}  // namespace berth::gguf
