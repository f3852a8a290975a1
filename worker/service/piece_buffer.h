#pragma once

#include <cstddef>

#include "berth/v1/inference.pb.h"

namespace berth::worker {

// What of an answer waits to be sent as one message: the pieces that came since the last one, as
// one piece. Bounded by who asks has_room() before making more. What has no room left is always
// due: else both sides would wait for each other. Not thread-safe.
class PieceBuffer {
 public:
  static constexpr int kMaxTokens = 512;
  // Tokens that became no text yet are sent with the next text, unless there are so many.
  static constexpr int kMaxSilentTokens = 64;
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 10U;

  // Takes a piece, which may be emptied. Pieces of one tool call become one.
  void add(v1::Token& piece);
  // Moves all into `to`, whose content is lost.
  void take(v1::Token& to);
  [[nodiscard]] bool has_room() const {
    return piece_.ids_size() < kMaxTokens && bytes_ < kMaxBytes;
  }
  // Whether to send it now; `last`: nothing more will come.
  [[nodiscard]] bool due(bool last) const;

 private:
  v1::Token piece_;
  std::size_t bytes_ = 0;  // of its texts and log probabilities
};

}  // namespace berth::worker
