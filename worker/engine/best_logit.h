#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace berth::worker {

// Index of the highest of a model's outputs, of equals the first; nothing where one of them is NaN,
// or the highest is not finite: then the model is broken, and no order of them means anything.
// Single outputs may be -infinity: suppressed tokens.
std::optional<std::size_t> best_logit(std::span<const float> logits);

}  // namespace berth::worker
