#pragma once

#include <cstddef>
#include <cstdint>

namespace berth::worker {

// How many tokens to have drafted for a lane, by how many of the last ones were right. A proposal
// costs a place in a batch whether it is right or not: where fewer than half are right, the next
// proposal is half as long, down to none; after a pause that doubles each time one token is tried
// again. So a draft that is always wrong costs fewer than `most` tokens at the beginning, and one
// of 256 later on. Not thread-safe.
class DraftPace {
 public:
  static constexpr std::uint32_t kShortestPause = 16;  // tokens of the answer
  static constexpr std::uint32_t kLongestPause = 256;

  DraftPace() = default;
  explicit DraftPace(std::size_t most) : most_(most), length_((most + 1) / 2) {}

  // How many tokens may be proposed now. To be asked once per batch of the lane.
  [[nodiscard]] std::size_t next();
  // What became of a proposal. One without tokens costs its computation as well: it counts as one
  // token that was wrong.
  void learn(std::size_t proposed, std::size_t accepted);

 private:
  std::size_t most_ = 0;
  std::size_t length_ = 0;
  std::uint32_t wait_ = 0;
  std::uint32_t pause_ = kShortestPause;
};

}  // namespace berth::worker
