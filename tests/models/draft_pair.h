#pragma once

#include <cstdint>
#include <string>

#include "common/result.h"
#include "tests/models/random_model.h"

namespace berth::test_models {

// A model and a smaller one that often, and not always, says the same: the draft has the target's
// vocabulary, embedding, output and first `early_layers` layers. The target's other layers add only
// a little (`later_layers`).
struct DraftPair {
  ModelOptions target;
  ModelOptions draft;
};

// With a `later_layers` of 1, which would make the two strangers, kAgreeingLayers is taken; with a
// `sureness` of 1, with which nobody would propose a token, kSure. Errors: kInvalidArgument, where
// the model has not more than `early_layers` layers.
Result<DraftPair> draft_pair(ModelOptions options);
inline constexpr float kAgreeingLayers = 0.04F;
inline constexpr float kSure = 20.0F;

// Errors: as draft_pair() and write_model().
Status write_draft_pair(const ModelOptions& options, const std::string& target_path,
                        const std::string& draft_path);

}  // namespace berth::test_models
