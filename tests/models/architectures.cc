#include "tests/models/architectures.h"

#include <algorithm>
#include <array>
#include <string>

namespace berth::test_models {
namespace {

constexpr std::array<Architecture, 19> kArchitectures = {{
    {"llama", "llama", "grouped queries", Memory::kCells, true, build_llama},
    {"mixtral", "llama", "mixture of experts", Memory::kCells, true, build_mixtral},
    {"qwen2", "qwen2", "biases of queries, keys and values", Memory::kCells, true, build_qwen2},
    {"qwen2moe", "qwen2moe", "mixture of experts with a shared one", Memory::kCells, true,
     build_qwen2moe},
    {"qwen3", "qwen3", "norms of queries and keys", Memory::kCells, true, build_qwen3},
    {"qwen3moe", "qwen3moe", "mixture of experts", Memory::kCells, true, build_qwen3moe},
    {"gemma2", "gemma2", "every other layer with a sliding window, capped logits",
     Memory::kSlidingWindow, true, build_gemma2},
    {"gemma3", "gemma3", "every other layer with a sliding window", Memory::kSlidingWindow, true,
     build_gemma3},
    {"mistral", "llama", "names a sliding window, which libllama does not use", Memory::kCells,
     true, build_mistral},
    {"falcon", "falcon", "one head of keys and values, no gates", Memory::kCells, true,
     build_falcon},
    {"cohere2", "cohere2", "three of four layers with a sliding window, one norm for a whole layer",
     Memory::kSlidingWindow, true, build_cohere2},
    {"deepseek2", "deepseek2", "compressed keys and values", Memory::kCells, true, build_deepseek2},
    {"mamba", "mamba", "recurrent, state space", Memory::kRecurrent, true, build_mamba},
    {"rwkv7", "rwkv7", "recurrent, linear attention", Memory::kRecurrent, true, build_rwkv7},
    {"jamba", "jamba", "hybrid: every other layer a state space", Memory::kHybrid, true,
     build_jamba},
    {"lfm2", "lfm2", "hybrid: every other layer a short convolution", Memory::kHybrid, true,
     build_lfm2},
    {"bert", "bert", "encoder for embeddings", Memory::kNone, false, build_bert},
    {"nomic-bert", "nomic-bert", "encoder for embeddings, rotary positions", Memory::kNone, false,
     build_nomic_bert},
    {"t5", "t5", "encoder and decoder", Memory::kCells, false, build_t5},
}};

}  // namespace

std::span<const Architecture> all_architectures() {
  return kArchitectures;
}

const Architecture* find_architecture(std::string_view name) {
  const auto* const found =
      std::find_if(kArchitectures.begin(), kArchitectures.end(),
                   [&](const Architecture& known) { return known.name == name; });
  return found == kArchitectures.end() ? nullptr : found;
}

std::string block_name(std::uint32_t layer) {
  return "blk." + std::to_string(layer) + ".";
}

Status check_options(const ModelOptions& o) {
  const auto bad = [](const std::string& what) { return fail(Reason::kInvalidArgument, what); };
  if (o.layers == 0 || o.embedding == 0 || o.feed_forward == 0 || o.vocabulary == 0 ||
      o.context == 0 || o.shards == 0) {
    return bad("layers, embedding, feed-forward, vocabulary, context and shards must not be 0");
  }
  if (o.heads == 0 || o.embedding % o.heads != 0 || o.embedding / o.heads % 2 != 0) {
    return bad("the embedding must be an even multiple of the heads");
  }
  if (o.kv_heads == 0 || o.heads % o.kv_heads != 0) {
    return bad("the heads must be a multiple of the KV heads");
  }
  if (o.experts_used == 0 || o.experts_used > o.experts) {
    return bad("at least one expert must be used, and no more than there are");
  }
  const std::uint32_t block = block_values(o.weights);
  if (o.embedding % block != 0 || o.feed_forward % block != 0) {
    return bad("with " + std::string(type_name(o.weights)) +
               " the embedding and the feed-forward width must be multiples of " +
               std::to_string(block));
  }
  if (o.architecture == "rwkv7" && o.embedding % 64 != 0) {
    return bad("with rwkv7 the embedding must be a multiple of 64, the width of its heads");
  }
  return {};
}

}  // namespace berth::test_models
