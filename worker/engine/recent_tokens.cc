#include "worker/engine/recent_tokens.h"

#include <algorithm>

namespace berth::worker {

bool RecentTokens::add(TokenId token) {
  if (token < 0 || static_cast<std::size_t>(token) >= stamps_.size()) return false;
  if (ring_.size() < window_) {
    ring_.push_back(token);
    return true;
  }
  ring_[oldest_] = token;
  oldest_ = (oldest_ + 1) % window_;
  return true;
}

std::span<const TokenId> RecentTokens::distinct() {
  if (++round_ == 0) {  // after 4 thousand million rounds an old stamp could look new
    std::fill(stamps_.begin(), stamps_.end(), 0);
    round_ = 1;
  }
  distinct_.clear();
  for (const TokenId token : ring_) {
    auto& stamp = stamps_[static_cast<std::size_t>(token)];
    if (stamp == round_) continue;
    stamp = round_;
    distinct_.push_back(token);
  }
  return distinct_;
}

}  // namespace berth::worker
