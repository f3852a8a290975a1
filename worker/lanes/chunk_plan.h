#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/clock.h"

namespace berth::worker {

// How many tokens of prompts may stand in a batch while others generate (S2): as many as the model
// reads in 100 ms, by the speed of its latest batches. Not thread-safe; no clock of its own.
class PromptSpeed {
 public:
  static constexpr double kChunkSeconds = 0.1;  // the longest silence of a generating lane
  static constexpr std::size_t kLeastChunk = 16;
  // Weight of the past beside one more batch: a change of speed shows within some batches, and one
  // slow batch does not.
  static constexpr double kMemory = 0.8;
  static constexpr double kGrowth = 1.25;

  // A batch of so many tokens, most of them of prompts, took so long.
  void add(std::size_t tokens, Duration elapsed);
  // A batch of so many tokens, most of them generated ones, took so long. Prompts are read at least
  // at that speed, as a single token of a lane costs no less than one of many: where that is more
  // than what is known, the chunk grows, but by a quarter at most.
  void raise(std::size_t tokens, Duration elapsed);
  [[nodiscard]] bool known() const { return tokens_ > 0; }
  // How long so many tokens of prompts take; 0 before any batch.
  [[nodiscard]] Duration time_for(std::size_t tokens) const;
  // clamp(speed x 100 ms, 16, `most`); before any batch the least.
  [[nodiscard]] std::size_t chunk(std::size_t most) const;

 private:
  double tokens_ = 0;  // both decay alike, so that large batches count for more than small ones
  double seconds_ = 0;
};

// A prompt that waits to be read.
struct PromptShare {
  std::size_t unread = 0;   // tokens, at least 1
  std::uint64_t order = 0;  // of its job's beginning
  std::size_t share = 0;    // what it gets of the chunk
};

// Divides a chunk among prompts: a quarter is for the oldest, the rest goes to the shortest first.
// So a short prompt is read at once however long the others are (its first token waits for its own
// chunks only), and nobody starves: the oldest is read in at most four times the chunks that it
// would need alone, then the next is the oldest. With equal shares a short prompt would wait the
// longer the more others there are; in the order of arrival for the whole of what came before it.
// The shares' sum is min(`chunk`, all that is unread).
void share_chunk(std::span<PromptShare> prompts, std::size_t chunk);

}  // namespace berth::worker
