#include "tests/integration/engine/vocabulary_model.h"

#include <unistd.h>

#include <filesystem>
#include <stdexcept>

#include "worker/engine/llama_log.h"

namespace berth::worker {

VocabularyModel::VocabularyModel(const std::string& file) {
  load(std::string(BERTH_MODELS) + "/" + file);
}

VocabularyModel::VocabularyModel(test_models::Tokenizer tokenizer, std::uint32_t size,
                                 const Keys& keys) {
  test_models::ModelOptions options;
  options.tokenizer = tokenizer;
  options.vocabulary = size;
  options.layers = 1;
  options.embedding = 32;
  options.heads = 1;
  options.kv_heads = 1;
  const auto path = std::filesystem::temp_directory_path() /
                    ("berth-vocabulary-" + std::to_string(::getpid()) + ".gguf");
  auto model = test_models::make_model(options);
  if (!model) throw std::runtime_error(model.error().message);
  for (const auto& [key, value] : keys) {
    model->remove_key(key);
    model->set_bool(key, value);
  }
  const auto written = model->write(path.string());
  if (!written) throw std::runtime_error(written.error().message);
  load(path.string());
  std::filesystem::remove(path);
}

void VocabularyModel::load(const std::string& path) {
  LlamaLog::instance().install();
  auto parameters = llama_model_default_params();
  parameters.vocab_only = true;
  model_.reset(llama_model_load_from_file(path.c_str(), parameters));
  if (!model_) throw std::runtime_error("no vocabulary in " + path);
}

}  // namespace berth::worker
