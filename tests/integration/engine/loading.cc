#include "tests/integration/engine/loading.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <utility>

#include "worker/engine/llama_load.h"

namespace berth::worker {
namespace {

class Silent final : public LoadObserver {
 public:
  void on_progress(const LoadProgress& /*progress*/) override {}
  void on_vocabulary(const Engine& /*engine*/) override {}
  [[nodiscard]] bool cancelled() const override { return false; }
};

class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string name = "/tmp/berth-engine-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = name;
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

Loaded load(EngineSettings settings) {
  if (settings.threads == 0) settings.threads = 1;
  Silent observer;
  return load_llama_engine(settings, observer);
}

std::unique_ptr<Engine> load_well(EngineSettings settings) {
  auto loaded = load(std::move(settings));
  if (!loaded) {
    ADD_FAILURE() << loaded.error().reason;
    throw std::runtime_error(loaded.error().reason);
  }
  return std::move(*loaded);
}

LoadFailure failure_of(EngineSettings settings) {
  const auto loaded = load(std::move(settings));
  EXPECT_FALSE(loaded.has_value());
  return loaded ? LoadFailure{} : loaded.error();
}

std::string scratch_file(const std::string& name) {
  static const ScratchDirectory directory;
  static int files = 0;
  return directory.path() + "/" + std::to_string(files++) + "-" + name;
}

std::string random_file(const test_models::ModelOptions& options) {
  auto path = scratch_file(options.architecture + ".gguf");
  if (const auto written = test_models::write_model(options, path); !written) {
    ADD_FAILURE() << written.error().message;
  }
  return path;
}

std::vector<TokenId> greedy(Engine& engine, SequenceId sequence, std::uint32_t position,
                            const std::vector<TokenId>& prompt, std::size_t count) {
  SamplingSettings settings;
  settings.temperature = 0;
  const auto sampler = engine.make_sampler(settings);
  std::vector<TokenId> chosen;
  std::span<const TokenId> next(prompt);
  while (chosen.size() < count) {
    std::vector<BatchItem> batch;
    for (const auto token : next) batch.push_back({sequence, token, position++, false});
    batch.back().wants_output = true;
    std::string error;
    if (engine.decode(batch, error) != DecodeOutcome::kDone) {
      ADD_FAILURE() << error;
      break;
    }
    const auto token = engine.sample(**sampler, batch.size() - 1);
    if (!token) {
      ADD_FAILURE() << token.error().message;
      break;
    }
    chosen.push_back(token->token);
    next = std::span<const TokenId>(&chosen.back(), 1);
  }
  return chosen;
}

std::vector<TokenId> some_tokens(std::size_t count, std::uint32_t seed) {
  std::vector<TokenId> tokens;
  for (std::uint32_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<TokenId>(300 + (i * 7919U + seed * 104729U) % 700U));
  }
  return tokens;
}

}  // namespace berth::worker
