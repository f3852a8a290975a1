#include "worker/engine/candidates.h"

#include <algorithm>

namespace berth::worker {

void fill(std::span<const float> logits, float lowered_by, Candidates& candidates) {
  candidates.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    candidates[i] = llama_token_data{static_cast<llama_token>(i), logits[i] - lowered_by, 0};
  }
}

void fill_top(std::span<const float> logits, std::size_t count, float lowered_by,
              std::vector<ScoredToken>& selection, Candidates& candidates) {
  top_logits(logits, count, selection);
  candidates.resize(selection.size());
  for (std::size_t i = 0; i < selection.size(); ++i) {
    candidates[i] = llama_token_data{selection[i].token, selection[i].logit - lowered_by, 0};
  }
}

bool keep_best(Candidates& candidates, std::size_t count) {
  const auto before = [](const auto& left, const auto& right) {
    return left.logit != right.logit ? left.logit > right.logit : left.id < right.id;
  };
  const auto kept =
      candidates.begin() + static_cast<std::ptrdiff_t>(std::min(count, candidates.size()));
  const bool sorts = count <= kMostSorted;
  if (sorts) {
    std::partial_sort(candidates.begin(), kept, candidates.end(), before);
  } else {
    std::nth_element(candidates.begin(), kept, candidates.end(), before);
  }
  candidates.erase(kept, candidates.end());
  return sorts;
}

}  // namespace berth::worker
