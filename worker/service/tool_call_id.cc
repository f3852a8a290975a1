#include "worker/service/tool_call_id.h"

#include <sys/random.h>

#include <array>
#include <random>
#include <string_view>

namespace berth::worker {

std::string random_tool_call_id() {
  constexpr std::string_view kDigits = "abcdefghijklmnopqrstuvwxyz234567";
  static_assert(kDigits.size() == 32);
  std::array<unsigned char, 24> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    std::random_device device;
    for (auto& byte : bytes) byte = static_cast<unsigned char>(device());
  }
  std::string id = "call_";
  for (const auto byte : bytes) id.push_back(kDigits[byte % kDigits.size()]);
  return id;
}

}  // namespace berth::worker
