#include "tests/models/draft_pair.h"

#include <utility>

namespace berth::test_models {

Result<DraftPair> draft_pair(ModelOptions options) {
  if (options.early_layers == 0 || options.layers <= options.early_layers) {
    return fail(Reason::kInvalidArgument,
                "a model with a draft must have more layers than the draft (" +
                    std::to_string(options.early_layers) + ")");
  }
  if (options.later_layers == 1.0F) options.later_layers = kAgreeingLayers;
  if (options.sureness == 1.0F) options.sureness = kSure;
  DraftPair pair{options, std::move(options)};
  pair.draft.layers = pair.draft.early_layers;
  pair.draft.name += " draft";
  return pair;
}

Status write_draft_pair(const ModelOptions& options, const std::string& target_path,
                        const std::string& draft_path) {
  const auto pair = draft_pair(options);
  if (!pair) return fail(pair.error());
  if (auto written = write_model(pair->target, target_path); !written) {
    return fail(std::move(written).error());
  }
  if (auto written = write_model(pair->draft, draft_path); !written) {
    return fail(std::move(written).error());
  }
  return {};
}

}  // namespace berth::test_models
