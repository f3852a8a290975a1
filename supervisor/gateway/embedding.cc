#include "supervisor/gateway/embedding.h"

namespace berth::gateway {

Status EmbeddingKind::fits(const catalog::Model& model) {
  // A broken one says itself what is wrong; of a program only the program knows.
  if (model.can_embed || model.settings.embeddings || !model.problem.empty() ||
      model.settings.kind == catalog::Kind::kCommand) {
    return {};
  }
  return invalid_argument(
      "model",
      "The model " + model.name +
          " does not give embeddings: it has no pooling type of its own. Set `embeddings = "
          "true` in [model.\"" +
          model.name + "\"], or ask a model that `berth models --json` shows with can_embed.");
}

}  // namespace berth::gateway
