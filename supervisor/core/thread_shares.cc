#include "supervisor/core/thread_shares.h"

namespace berth::core {

std::vector<std::uint32_t> share_threads(std::uint32_t cores,
                                         std::span<const std::uint32_t> wanted) {
  std::vector<std::uint32_t> shares(wanted.size(), 1);
  if (cores <= wanted.size()) return shares;
  auto left = cores - static_cast<std::uint32_t>(wanted.size());
  // One more for each who wants it, round by round.
  for (bool given = true; given && left > 0;) {
    given = false;
    for (std::size_t i = 0; i < wanted.size() && left > 0; ++i) {
      if (shares[i] >= wanted[i]) continue;
      ++shares[i];
      --left;
      given = true;
    }
  }
  return shares;
}

}  // namespace berth::core
