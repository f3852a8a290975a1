#pragma once

#include "common/result.h"
#include "supervisor/core/memory/architecture.h"
#include "supervisor/core/memory/header_keys.h"
#include "supervisor/core/memory/model_shape.h"

namespace berth::core {

// Fills in what each of shape.layers keeps of a text: keys, values, windows, states; how many heads
// it has and how wide its feed-forward part is. Needs shape.embedding. `rules` null: guesses.
// Errors: kInvalidArgument.
Status read_layer_memory(const HeaderKeys& keys, const ArchitectureRules* rules, ModelShape& shape);

}  // namespace berth::core
