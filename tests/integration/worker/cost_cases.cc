#include "tests/integration/worker/cost_cases.h"

#include <ostream>

namespace berth::worker {
namespace {

using test_models::ModelOptions;
using test_models::Pooling;
using test_models::TensorType;

ModelOptions changed(ModelOptions options, void (*change)(ModelOptions&)) {
  change(options);
  return options;
}

}  // namespace

ModelOptions sized(std::string_view architecture, TensorType type) {
  ModelOptions options;
  options.architecture = architecture;
  options.layers = 8;
  options.heads = 8;
  options.kv_heads = 2;
  options.embedding = 512;
  options.feed_forward = 1536;
  options.vocabulary = 32'000;
  options.context = 32'768;
  options.sliding_window = 512;
  options.weights = type;
  return options;
}

void PrintTo(const CostCase& one, std::ostream* out) {
  *out << one.name;
}

std::vector<CostCase> cost_cases() {
  const auto tied = [](ModelOptions& o) { o.tied_output = true; };
  return {
      {"llama", sized("llama")},
      {"llama_no_grouping", changed(sized("llama"), [](ModelOptions& o) { o.kv_heads = 8; })},
      {"llama_q8_0", sized("llama", TensorType::kQ8_0), {.window = 16'384}},
      {"llama_q4_K", sized("llama", TensorType::kQ4_K)},
      {"llama_q4_K_tied", changed(sized("llama", TensorType::kQ4_K), tied)},
      {"llama_q4_0_shards",
       changed(sized("llama", TensorType::kQ4_0), [](ModelOptions& o) { o.shards = 3; })},
      {"llama_long_window", sized("llama"), {.window = 32'768, .sequences = 4}},
      {"llama_kv_q8_0", sized("llama"), {.window = 16'384, .sequences = 2}, "q8_0"},
      {"llama_no_flash",
       sized("llama"),
       {.window = 2048, .flash_attention = core::FlashAttention::kOff}},
      {"llama_small_batch", sized("llama"), {.window = 5000, .batch = 128}},
      {"llama_wide",
       changed(sized("llama", TensorType::kQ8_0),
               [](ModelOptions& o) {
                 o.embedding = 2048;
                 o.feed_forward = 5632;
                 o.heads = 32;
                 o.kv_heads = 4;
                 o.layers = 4;
               }),
       {.window = 8192}},
      {"llama_with_draft", sized("llama"), {.window = 4096, .sequences = 2}, "f16", true},
      {"llama_with_adapter", sized("llama"), {}, "f16", false, true},
      {"mistral", sized("mistral")},
      {"mixtral", sized("mixtral")},
      {"qwen2_large_vocabulary", changed(sized("qwen2", TensorType::kQ8_0),
                                         [](ModelOptions& o) {
                                           o.vocabulary = 151'936;
                                           o.tied_output = true;
                                         })},
      {"qwen2moe", sized("qwen2moe", TensorType::kQ8_0)},
      {"qwen3", sized("qwen3", TensorType::kQ6_K)},
      {"qwen3moe", sized("qwen3moe", TensorType::kQ8_0)},
      {"qwen3_embeds",
       changed(sized("qwen3"), [](ModelOptions& o) { o.pooling = Pooling::kLast; }),
       {.window = 2048, .embeds = true}},
      {"gemma2", sized("gemma2"), {.window = 16'384}},
      {"gemma3", sized("gemma3"), {.window = 32'768, .sequences = 3}},
      {"cohere2", sized("cohere2"), {.window = 16'384}},
      {"falcon", sized("falcon")},
      {"deepseek2", sized("deepseek2"), {.window = 8192}},
      {"mamba", sized("mamba"), {.window = 8192, .sequences = 4}},
      {"rwkv7", sized("rwkv7"), {.window = 4096, .sequences = 4}},
      {"jamba", sized("jamba"), {.window = 8192, .sequences = 2}},
      {"lfm2", sized("lfm2"), {.window = 8192, .sequences = 2}},
      {"bert", changed(sized("bert"), [](ModelOptions& o) { o.context = 512; })},
      {"nomic_bert",
       changed(sized("nomic-bert"), [](ModelOptions& o) { o.context = 2048; }),
       {.window = 2048, .sequences = 2}},
  };
}

}  // namespace berth::worker
