#pragma once

#include <span>

namespace berth::worker {

// Natural logarithm of the sum of e^logit, what has to be subtracted from a logit to get its log
// probability. `highest` is the highest of them and finite; none is NaN, some may be -infinity. The
// error is below 1e-5.
float log_sum_exp(std::span<const float> logits, float highest);

}  // namespace berth::worker
