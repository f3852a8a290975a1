#include "worker/engine/fewest_tokens.h"

namespace berth::worker {
namespace {

// 1 for the first byte of a character that is no ASCII space.
constexpr std::uint32_t counts(unsigned char byte) {
  const bool continues = (byte & 0xC0U) == 0x80U;
  const bool space = byte == ' ' || (byte >= '\t' && byte <= '\r');
  return static_cast<std::uint32_t>(!continues) & static_cast<std::uint32_t>(!space);
}

}  // namespace

std::size_t fewest_tokens(std::string_view text, std::uint32_t bound) {
  if (bound == 0) return 0;
  std::size_t characters = 0;
  while (!text.empty()) {
    const auto part = text.substr(0, 1U << 16U);  // its sum fits into the lanes of 32 bits
    std::uint32_t sum = 0;
    for (const char letter : part) sum += counts(static_cast<unsigned char>(letter));
    characters += sum;
    text.remove_prefix(part.size());
  }
  return (characters + bound - 1) / bound;
}

}  // namespace berth::worker
