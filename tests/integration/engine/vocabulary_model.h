#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/models/random_model.h"
#include "worker/engine/llama_handles.h"
#include "worker/engine/llama_vocabulary.h"

namespace berth::worker {

// Only the vocabulary of a model, by libllama: of tests/models, or made with `size` tokens
// and with these keys of the file changed.
class VocabularyModel {
 public:
  using Keys = std::vector<std::pair<std::string, bool>>;
  explicit VocabularyModel(const std::string& file);
  VocabularyModel(test_models::Tokenizer tokenizer, std::uint32_t size, const Keys& keys = {});

  [[nodiscard]] const llama_vocab* get() const { return llama_model_get_vocab(model_.get()); }
  [[nodiscard]] LlamaVocabulary vocabulary() const { return LlamaVocabulary(get()); }

 private:
  void load(const std::string& path);

  ModelPointer model_;
};

}  // namespace berth::worker
