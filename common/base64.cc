#include "common/base64.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace berth {

void append_base64(std::string& out, std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  constexpr std::size_t kGroup = 3;  // bytes that make four digits
  out.reserve(out.size() + (bytes.size() + kGroup - 1) / kGroup * 4);
  for (std::size_t i = 0; i < bytes.size(); i += kGroup) {
    const std::size_t here = std::min(kGroup, bytes.size() - i);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < kGroup; ++k) {
      bits = bits << 8U | (k < here ? static_cast<std::uint8_t>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      const auto digit = bits >> (18U - 6U * static_cast<unsigned>(k)) & 0x3FU;
      out += k <= here ? kDigits[digit] : '=';
    }
  }
}

}  // namespace berth
