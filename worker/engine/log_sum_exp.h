#pragma once

#include <span>

namespace berth::worker {

// Natural logarithm of the sum of e^(logit - highest): the log probability of a logit is
// (logit - highest) less this, in this order, which loses no digits where logits are large.
// `highest` is the highest of them and finite; none is NaN, some may be -infinity. At least 0; the
// error is below 1e-5.
float log_sum_over(std::span<const float> logits, float highest);

}  // namespace berth::worker
