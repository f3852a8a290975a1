#include "worker/lanes/draft_pace.h"

#include <algorithm>

namespace berth::worker {

std::size_t DraftPace::next() {
  if (wait_ == 0) return length_;
  --wait_;
  return 0;
}

void DraftPace::learn(std::size_t proposed, std::size_t accepted) {
  proposed = std::max<std::size_t>(proposed, 1);
  if (accepted == proposed) {
    length_ = std::min(most_, length_ * 2);
    pause_ = kShortestPause;
    return;
  }
  if (accepted * 2 >= proposed) return;
  length_ /= 2;
  if (length_ > 0) return;
  length_ = 1;
  wait_ = pause_;
  pause_ = std::min(pause_ * 2, kLongestPause);
}

}  // namespace berth::worker
