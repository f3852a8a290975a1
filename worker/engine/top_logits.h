#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace berth::worker {

// One output of a model.
struct ScoredToken {
  std::int32_t token = 0;
  float logit = 0;
};

// The `count` highest of a model's outputs, the highest first, of equals the lower token first.
// Those at -infinity are left out. No output is NaN. `out` is replaced; once its capacity has grown
// to 2 * count, nothing is allocated any more.
void top_logits(std::span<const float> logits, std::size_t count, std::vector<ScoredToken>& out);

}  // namespace berth::worker
