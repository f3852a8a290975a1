#include "worker/lanes/chunk_plan.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

namespace berth::worker {

void PromptSpeed::add(std::size_t tokens, Duration elapsed) {
  tokens_ = tokens_ * kMemory + static_cast<double>(tokens);
  seconds_ = seconds_ * kMemory + std::max(0.0, std::chrono::duration<double>(elapsed).count());
}

void PromptSpeed::raise(std::size_t tokens, Duration elapsed) {
  const auto seconds = std::max(1e-9, std::chrono::duration<double>(elapsed).count());
  if (tokens_ <= 0) seconds_ = seconds;
  if (seconds_ <= 0) return;  // as fast as can be already
  const auto present =
      std::max(tokens_ / seconds_, static_cast<double>(kLeastChunk) / kChunkSeconds);
  const auto least = static_cast<double>(tokens) / seconds;
  if (least > present) tokens_ = std::min(least, present * kGrowth) * seconds_;
}

Duration PromptSpeed::time_for(std::size_t tokens) const {
  if (tokens_ <= 0) return {};
  const auto seconds = static_cast<double>(tokens) * seconds_ / tokens_;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

std::size_t PromptSpeed::chunk(std::size_t most) const {
  const auto least = std::min(kLeastChunk, most);
  if (tokens_ <= 0) return least;
  const auto tokens = tokens_ * kChunkSeconds;
  // Also where no time passed at all.
  if (tokens >= seconds_ * static_cast<double>(most)) return most;
  return std::max(least, static_cast<std::size_t>(tokens / seconds_));
}

void share_chunk(std::span<PromptShare> prompts, std::size_t chunk) {
  if (prompts.empty()) return;
  auto& oldest = *std::min_element(
      prompts.begin(), prompts.end(),
      [](const PromptShare& a, const PromptShare& b) { return a.order < b.order; });
  oldest.share = std::min({oldest.unread, std::max<std::size_t>(1, chunk / 4), chunk});
  auto left = chunk - oldest.share;

  std::vector<PromptShare*> shortest_first;
  shortest_first.reserve(prompts.size());
  for (auto& prompt : prompts) shortest_first.push_back(&prompt);
  std::sort(shortest_first.begin(), shortest_first.end(),
            [](const PromptShare* a, const PromptShare* b) {
              return a->unread != b->unread ? a->unread < b->unread : a->order < b->order;
            });
  for (auto* const prompt : shortest_first) {
    const auto more = std::min(left, prompt->unread - prompt->share);
    prompt->share += more;
    left -= more;
  }
}

}  // namespace berth::worker
