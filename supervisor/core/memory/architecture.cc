#include "supervisor/core/memory/architecture.h"

#include <algorithm>
#include <array>

namespace berth::core {
namespace {

constexpr auto kWithKey = WindowRule::kWithKey;
constexpr auto kAlways = WindowRule::kAlways;

constexpr ArchitectureRules cells(std::string_view name) {
  return {.name = name};
}
constexpr ArchitectureRules windows(std::string_view name, WindowRule rule, std::uint32_t period,
                                    std::uint32_t own_window = 0, bool full_first = false) {
  return {.name = name,
          .window = rule,
          .period = period,
          .full_first = full_first,
          .own_window = own_window};
}
constexpr ArchitectureRules state(std::string_view name, StateRule rule, bool estimated = false) {
  return {.name = name, .state = rule, .estimated = estimated};
}
constexpr ArchitectureRules encoder(std::string_view name) {
  return {.name = name, .encoder = true};
}
// Caches something of its own (compressed keys, an index); counted as what the header says.
constexpr ArchitectureRules estimated(std::string_view name) {
  return {.name = name, .estimated = true};
}

constexpr std::array kRules = {
    cells("apertus"),
    cells("arcee"),
    cells("arctic"),
    cells("baichuan"),
    cells("bailingmoe"),
    estimated("bailingmoe2"),
    cells("bitnet"),
    cells("bloom"),
    cells("chameleon"),
    cells("chatglm"),
    cells("codeshell"),
    cells("cogvlm"),
    cells("command-r"),
    cells("dbrx"),
    cells("deci"),
    cells("deepseek"),
    cells("deepseek2"),
    cells("dots1"),
    cells("ernie4_5"),
    cells("ernie4_5-moe"),
    cells("exaone"),
    cells("falcon"),
    cells("gemma"),
    cells("glm4"),
    estimated("glm4moe"),
    estimated("minicpm3"),
    estimated("mistral4"),
    cells("gpt2"),
    cells("gptneox"),
    cells("granite"),
    cells("granitemoe"),
    cells("grok"),
    cells("grovemoe"),
    cells("hunyuan-dense"),
    cells("hunyuan-moe"),
    cells("internlm2"),
    cells("jais"),
    cells("jais2"),
    cells("llama"),
    cells("maincoder"),
    cells("minicpm"),
    cells("minimax-m2"),
    cells("mistral3"),
    cells("mpt"),
    cells("nemotron"),
    cells("olmo"),
    cells("olmoe"),
    cells("openelm"),
    cells("orion"),
    cells("pangu-embedded"),
    cells("phi2"),
    cells("phi3"),
    cells("phimoe"),
    cells("plamo"),
    cells("plm"),
    cells("qwen"),
    cells("qwen2"),
    cells("qwen2moe"),
    cells("qwen2vl"),
    cells("qwen3"),
    cells("qwen3moe"),
    cells("qwen3vl"),
    cells("qwen3vlmoe"),
    cells("refact"),
    cells("seed_oss"),
    cells("smollm3"),
    cells("stablelm"),
    cells("starcoder"),
    cells("starcoder2"),
    cells("xverse"),

    windows("afmoe", kWithKey, 4),
    windows("cohere2", kAlways, 4),
    windows("cohere2moe", kAlways, 4, 0, true),
    ArchitectureRules{
        .name = "exaone4", .window = kAlways, .period = 4, .own_window = 4096, .only_layers = 64},
    windows("exaone-moe", kWithKey, 4),
    windows("gemma2", kAlways, 2, 4096),
    windows("gemma3", kWithKey, 6),
    windows("gemma3n", kAlways, 5),
    windows("gemma4", kAlways, 0),
    windows("gpt-oss", kAlways, 2),
    windows("llama4", kWithKey, 4, 8192),
    windows("mimo2", kAlways, 0),
    windows("muse-glimmer", kAlways, 4),
    windows("olmo2", kWithKey, 4),
    windows("plamo3", kWithKey, 8),
    windows("smallthinker", kWithKey, 4, 4096, true),
    windows("step35", kAlways, 0),

    state("arwkv7", StateRule::kEvery),
    state("mamba", StateRule::kEvery),
    state("mamba2", StateRule::kEvery),
    state("rwkv6", StateRule::kEvery),
    state("rwkv6qwen2", StateRule::kEvery),
    state("rwkv7", StateRule::kEvery),
    state("falcon-h1", StateRule::kBesides),
    state("granitehybrid", StateRule::kWithoutKv),
    state("jamba", StateRule::kWithoutKv),
    state("kimi-linear", StateRule::kWithoutKv, true),
    state("lfm2", StateRule::kWithoutKv),
    state("lfm2moe", StateRule::kWithoutKv),
    state("nemotron_h", StateRule::kWithoutKv, true),
    state("nemotron_h_moe", StateRule::kWithoutKv, true),
    state("plamo2", StateRule::kWithoutKv),
    state("qwen35", StateRule::kInterval, true),
    state("qwen35moe", StateRule::kInterval, true),
    state("qwen3next", StateRule::kInterval, true),

    encoder("bert"),
    encoder("eurobert"),
    encoder("gemma-embedding"),
    encoder("gemma-embedding2"),
    encoder("jina-bert-v2"),
    encoder("jina-bert-v3"),
    encoder("modern-bert"),
    encoder("neo-bert"),
    encoder("nomic-bert"),
    encoder("nomic-bert-moe"),
    encoder("t5encoder"),
};

}  // namespace

const ArchitectureRules* find_architecture(std::string_view name) {
  const auto* const found =
      std::find_if(kRules.begin(), kRules.end(),
                   [&](const ArchitectureRules& rules) { return rules.name == name; });
  return found == kRules.end() ? nullptr : found;
}

}  // namespace berth::core
