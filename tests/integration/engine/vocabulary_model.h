#pragma once

#include <string>

#include "tests/models/random_model.h"
#include "worker/engine/llama_handles.h"
#include "worker/engine/llama_vocabulary.h"

namespace berth::worker {

// Only the vocabulary of a model, by libllama: of tests/models, or made with `size` tokens.
class VocabularyModel {
 public:
  explicit VocabularyModel(const std::string& file);
  VocabularyModel(test_models::Tokenizer tokenizer, std::uint32_t size);

  [[nodiscard]] const llama_vocab* get() const { return llama_model_get_vocab(model_.get()); }
  [[nodiscard]] LlamaVocabulary vocabulary() const { return LlamaVocabulary(get()); }

 private:
  void load(const std::string& path);

  ModelPointer model_;
};

}  // namespace berth::worker
