#include "tests/integration/engine/generation.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <stdexcept>

#include "tests/models/random_model.h"
#include "worker/engine/llama_load.h"

namespace berth::worker {
namespace {

class Quiet final : public LoadObserver {
 public:
  void on_progress(const LoadProgress& /*progress*/) override {}
  void on_vocabulary(const Engine& /*engine*/) override {}
  [[nodiscard]] bool cancelled() const override { return false; }
};

// A directory that is removed when the process ends.
class Directory {
 public:
  Directory() {
    std::string name = (std::filesystem::temp_directory_path() / "berth-engine-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = name;
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

Engine& loaded(const std::string& model) {
  static auto* engines = new std::map<std::string, std::unique_ptr<Engine>>;
  auto& engine = (*engines)[model];
  if (!engine) {
    EngineSettings settings;
    settings.model_path = model.front() == '/' ? model : std::string(BERTH_MODELS) + "/" + model;
    settings.context = 1024;
    settings.threads = 1;
    Quiet observer;
    auto made = load_llama_engine(settings, observer);
    if (!made) throw std::runtime_error(made.error().reason);
    engine = std::move(*made);
  }
  return *engine;
}

Engine& loaded_random(const std::string& tokenizer, std::uint32_t size) {
  static const Directory directory;
  const auto path = directory.path() / (tokenizer + std::to_string(size) + ".gguf");
  if (!std::filesystem::exists(path)) {
    test_models::ModelOptions options;
    options.tokenizer =
        tokenizer == "spm" ? test_models::Tokenizer::kSpm : test_models::Tokenizer::kBpe;
    options.vocabulary = size;
    options.layers = 1;
    options.context = 4096;  // more than is served
    const auto written = test_models::write_model(options, path.string());
    if (!written) throw std::runtime_error(written.error().message);
  }
  return loaded(path.string());
}

std::string chat(std::string_view question) {
  return "<|im_start|>user\n" + std::string(question) + "<|im_end|>\n<|im_start|>assistant\n";
}

Generation generate(Engine& engine, const SamplingSettings& settings, std::string_view prompt,
                    std::size_t most) {
  Generation out;
  auto sampler = engine.make_sampler(settings);
  if (!sampler) {
    out.error = sampler.error();
    return out;
  }
  const auto tokens = engine.tokenize(prompt, true);
  if (!tokens) throw std::runtime_error(tokens.error().message);
  (*sampler)->accept_prompt(*tokens);
  engine.keep_prefix(0, 0);
  std::vector<BatchItem> batch;
  for (std::size_t i = 0; i < tokens->size(); ++i) {
    batch.push_back(BatchItem{0, (*tokens)[i], static_cast<std::uint32_t>(i), false});
  }
  batch.back().wants_output = true;
  auto position = static_cast<std::uint32_t>(tokens->size());
  while (out.tokens.size() < most) {
    std::string problem;
    if (engine.decode(batch, problem) != DecodeOutcome::kDone) throw std::runtime_error(problem);
    auto chosen = engine.sample(**sampler, batch.size() - 1);
    if (!chosen) {
      out.error = chosen.error();
      break;
    }
    out.tokens.push_back(*chosen);
    if (engine.ends_generation(chosen->token)) {
      out.ended = true;
      if (!settings.ignore_eos) break;
    }
    engine.append_piece(chosen->token, out.text);
    batch.assign(1, BatchItem{0, chosen->token, position++, true});
  }
  return out;
}

}  // namespace berth::worker
