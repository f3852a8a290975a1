#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/engine/sampling.h"

namespace berth::worker {

// The last tokens of one sequence, and which different ones they are: only those can be penalised
// for a repetition. One thread.
class RecentTokens {
 public:
  // `window`: most tokens that count; 0: none. Token ids are below `vocabulary`.
  RecentTokens(std::uint32_t window, std::uint32_t vocabulary)
      : window_(window), stamps_(window == 0 ? 0 : vocabulary) {}

  [[nodiscard]] std::size_t window() const { return window_; }

  // Returns whether the vocabulary has it; else it is left out.
  bool add(TokenId token);

  // Each of them once, in no order, until the next call of a function.
  std::span<const TokenId> distinct();

 private:
  std::uint32_t window_;
  std::vector<TokenId> ring_;  // grows to `window_`, then its oldest is replaced
  std::size_t oldest_ = 0;
  std::vector<std::uint32_t> stamps_;  // round_ at which a token was seen
  std::uint32_t round_ = 0;
  std::vector<TokenId> distinct_;
};

}  // namespace berth::worker
