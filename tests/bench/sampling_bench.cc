// Time per token of LlamaSampler beside libllama's own chain, on outputs as of a model; the
// argument is the number of tokens of the vocabulary. Both get the same outputs, and libllama's
// candidates are filled in as llama_sampler_sample() does it.

#include <benchmark/benchmark.h>

#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/models/random_model.h"
#include "worker/engine/llama_log.h"
#include "worker/engine/llama_sampler.h"

namespace berth::worker {
namespace {

constexpr const char* kGrammar = R"(
root   ::= object
value  ::= object | array | string | number
object ::= "{" (string ":" value ("," string ":" value)*)? "}"
array  ::= "[" (value ("," value)*)? "]"
string ::= "\"" [^"\\\x00-\x1F]* "\""
number ::= [0-9]+
)";

const llama_vocab* vocabulary(std::uint32_t size) {
  static std::map<std::uint32_t, ModelPointer> models;
  auto& model = models[size];
  if (!model) {
    test_models::ModelOptions options;
    options.vocabulary = size;
    options.layers = 1;
    options.embedding = 32;
    options.heads = options.kv_heads = 1;
    const auto path = std::filesystem::temp_directory_path() / "berth-sampling-bench.gguf";
    if (!test_models::write_model(options, path.string())) throw std::runtime_error("no model");
    LlamaLog::instance().install();
    auto parameters = llama_model_default_params();
    parameters.vocab_only = true;
    model.reset(llama_model_load_from_file(path.c_str(), parameters));
    std::filesystem::remove(path);
  }
  return llama_model_get_vocab(model.get());
}

std::vector<float> outputs(std::uint32_t size) {
  std::mt19937 random(1);
  std::normal_distribution<float> distribution(0, 2.5F);
  std::vector<float> logits(size);
  for (auto& logit : logits) logit = distribution(random);
  return logits;
}

SamplingSettings greedy() {
  SamplingSettings settings;
  settings.temperature = 0;
  return settings;
}
SamplingSettings penalised() {
  SamplingSettings settings;
  settings.repetition_penalty = 1.1F;
  return settings;
}
SamplingSettings with_grammar() {
  SamplingSettings settings;
  settings.grammar = kGrammar;
  return settings;
}
SamplingSettings with_logprobs() {
  SamplingSettings settings;
  settings.top_logprobs = 20;
  return settings;
}

// Tokens of an answer with a grammar.
constexpr std::size_t kAnswer = 64;

void ours(benchmark::State& state, const SamplingSettings& settings) {
  const auto size = static_cast<std::uint32_t>(state.range(0));
  const TokenStarts starts{LlamaVocabulary(vocabulary(size))};
  const auto make = [&] {
    return LlamaSampler::make(vocabulary(size), settings, LlamaSampler::kDefaultContext, &starts);
  };
  auto made = make();
  auto logits = outputs(size);
  std::vector<llama_token_data> scratch;
  std::size_t tokens = 0;
  for ([[maybe_unused]] auto _ : state) {
    if (!settings.grammar.empty() && ++tokens % kAnswer == 0) {
      state.PauseTiming();
      made = make();
      state.ResumeTiming();
    }
    auto chosen = static_cast<LlamaSampler&>(**made).choose(logits, scratch);
    if (!chosen) {
      state.SkipWithError(chosen.error().message.c_str());
      return;
    }
    benchmark::DoNotOptimize(chosen->token);
  }
}

// llama.cpp's chain of common samplers, and its way with grammars.
struct Reference {
  SamplerPointer chain;
  SamplerPointer grammar;
};

Reference make_reference(std::uint32_t size, const SamplingSettings& settings) {
  Reference made;
  auto parameters = llama_sampler_chain_default_params();
  parameters.no_perf = true;
  made.chain.reset(llama_sampler_chain_init(parameters));
  const auto add = [&](llama_sampler* one) { llama_sampler_chain_add(made.chain.get(), one); };
  if (settings.temperature <= 0) {
    add(llama_sampler_init_greedy());
    return made;
  }
  add(llama_sampler_init_penalties(static_cast<std::int32_t>(size), 64, settings.repetition_penalty,
                                   0, 0));
  add(llama_sampler_init_top_k(static_cast<std::int32_t>(settings.top_k)));
  add(llama_sampler_init_top_p(settings.top_p, 1));
  add(llama_sampler_init_min_p(settings.min_p, 1));
  add(llama_sampler_init_temp_ext(settings.temperature, 0, 1));
  add(llama_sampler_init_dist(1));
  if (!settings.grammar.empty()) {
    made.grammar.reset(
        llama_sampler_init_grammar(vocabulary(size), settings.grammar.c_str(), "root"));
  }
  return made;
}

llama_token_data_array fill(std::vector<llama_token_data>& candidates,
                            const std::vector<float>& logits) {
  candidates.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    candidates[i] = llama_token_data{static_cast<llama_token>(i), logits[i], 0};
  }
  return llama_token_data_array{candidates.data(), candidates.size(), -1, false};
}

llama_token reference_choice(const Reference& reference, const std::vector<float>& logits,
                             std::vector<llama_token_data>& scratch) {
  auto array = fill(scratch, logits);
  llama_sampler_apply(reference.chain.get(), &array);
  auto token = array.data[array.selected].id;
  if (reference.grammar) {
    llama_token_data one{token, 1, 0};
    llama_token_data_array single{&one, 1, -1, false};
    llama_sampler_apply(reference.grammar.get(), &single);
    if (one.logit < 0) {
      array = fill(scratch, logits);
      llama_sampler_apply(reference.grammar.get(), &array);
      llama_sampler_apply(reference.chain.get(), &array);
      token = array.data[array.selected].id;
    }
    llama_sampler_accept(reference.grammar.get(), token);
  }
  llama_sampler_accept(reference.chain.get(), token);
  return token;
}

void libllama(benchmark::State& state, const SamplingSettings& settings) {
  const auto size = static_cast<std::uint32_t>(state.range(0));
  auto reference = make_reference(size, settings);
  const auto logits = outputs(size);
  std::vector<llama_token_data> scratch;
  std::size_t tokens = 0;
  for ([[maybe_unused]] auto _ : state) {
    if (reference.grammar && ++tokens % kAnswer == 0) {
      state.PauseTiming();
      reference = make_reference(size, settings);
      state.ResumeTiming();
    }
    benchmark::DoNotOptimize(reference_choice(reference, logits, scratch));
  }
}

void make_dry(benchmark::State& state) {
  SamplingSettings settings;
  settings.dry_multiplier = 1;
  const auto* const made = vocabulary(static_cast<std::uint32_t>(state.range(0)));
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(LlamaSampler::make(made, settings));
  }
}

#define BERTH_SIZES Arg(32000)->Arg(150000)->Unit(benchmark::kMicrosecond)
BENCHMARK_CAPTURE(ours, greedy, greedy())->BERTH_SIZES;
BENCHMARK_CAPTURE(libllama, greedy, greedy())->BERTH_SIZES;
BENCHMARK_CAPTURE(ours, defaults, SamplingSettings{})->BERTH_SIZES;
BENCHMARK_CAPTURE(libllama, defaults, SamplingSettings{})->BERTH_SIZES;
BENCHMARK_CAPTURE(ours, penalties, penalised())->BERTH_SIZES;
BENCHMARK_CAPTURE(libllama, penalties, penalised())->BERTH_SIZES;
BENCHMARK_CAPTURE(ours, grammar, with_grammar())->BERTH_SIZES;
BENCHMARK_CAPTURE(libllama, grammar, with_grammar())->BERTH_SIZES;
BENCHMARK_CAPTURE(ours, logprobs, with_logprobs())->BERTH_SIZES;
BENCHMARK(make_dry)->BERTH_SIZES;

}  // namespace
}  // namespace berth::worker

BENCHMARK_MAIN();
