#include "worker/engine/top_logits.h"

#include <algorithm>
#include <limits>

namespace berth::worker {
namespace {

// Outputs that are compared side by side: nearly all of these groups hold nothing of interest once
// the bar is high, and to see that is one vector comparison per few values.
constexpr std::size_t kGroup = 32;

bool before(const ScoredToken& left, const ScoredToken& right) {
  if (left.logit != right.logit) return left.logit > right.logit;
  return left.token < right.token;
}

bool any_above(const float* values, float bar) {
  unsigned found = 0;
  for (std::size_t i = 0; i < kGroup; ++i) found |= values[i] > bar ? 1U : 0U;
  return found != 0;
}

// Keeps what may be among the highest: up to 2 * count, then the better half.
class Selection {
 public:
  Selection(std::size_t count, std::vector<ScoredToken>& kept) : count_(count), kept_(kept) {}

  // What is not above it cannot be among the highest: tokens come in rising order, so of equals the
  // earlier ones are kept.
  [[nodiscard]] float bar() const { return bar_; }

  void offer(std::size_t token, float logit) {
    if (!(logit > bar_)) return;
    kept_.push_back(ScoredToken{static_cast<std::int32_t>(token), logit});
    if (kept_.size() == 2 * count_) halve();
  }

 private:
  void halve() {
    const auto last = kept_.begin() + static_cast<std::ptrdiff_t>(count_ - 1);
    std::nth_element(kept_.begin(), last, kept_.end(), &before);
    kept_.resize(count_);
    bar_ = kept_.back().logit;
  }

  std::size_t count_;
  std::vector<ScoredToken>& kept_;
  float bar_ = -std::numeric_limits<float>::infinity();
};

}  // namespace

void top_logits(std::span<const float> logits, std::size_t count, std::vector<ScoredToken>& out) {
  out.clear();
  count = std::min(count, logits.size());
  if (count == 0) return;
  out.reserve(2 * count);
  Selection selection(count, out);
  const auto whole = logits.size() / kGroup * kGroup;
  for (std::size_t at = 0; at < whole; at += kGroup) {
    if (!any_above(logits.data() + at, selection.bar())) continue;
    for (std::size_t i = at; i < at + kGroup; ++i) selection.offer(i, logits[i]);
  }
  for (std::size_t i = whole; i < logits.size(); ++i) selection.offer(i, logits[i]);
  const auto kept = std::min(count, out.size());
  std::partial_sort(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(kept), out.end(),
                    &before);
  out.resize(kept);
}

}  // namespace berth::worker
