#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "llama.h"
#include "worker/engine/top_logits.h"

namespace berth::worker {

// What libllama's samplers choose from.
using Candidates = std::vector<llama_token_data>;

// Sorting more of them would take longer than all else that a sampler does.
inline constexpr std::size_t kMostSorted = 8192;

// Makes candidates of all outputs, each less `lowered_by`.
void fill(std::span<const float> logits, float lowered_by, Candidates& candidates);
// Ditto of the `count` highest, the likeliest first. `selection` is scratch.
void fill_top(std::span<const float> logits, std::size_t count, float lowered_by,
              std::vector<ScoredToken>& selection, Candidates& candidates);
// Keeps the `count` likeliest, of equals those with the lower ids. Returns whether they are in that
// order: more than kMostSorted are left as they come.
bool keep_best(Candidates& candidates, std::size_t count);

}  // namespace berth::worker
