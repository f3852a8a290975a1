#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "common/result.h"
#include "tests/models/model_builder.h"
#include "tests/models/random_model.h"

namespace berth::test_models {

// How a model keeps what it has read; what may be reused of it differs.
enum class Memory : std::uint8_t {
  kCells,          // keys and values of every token
  kSlidingWindow,  // of some layers only those of the last tokens
  kRecurrent,      // one state for all tokens so far
  kHybrid,         // both
  kNone,           // reads all tokens at once: an encoder
};

// A kind of model that can be made.
struct Architecture {
  std::string_view name;     // for ModelOptions::architecture
  std::string_view general;  // general.architecture
  std::string_view summary;  // for a list
  Memory memory;
  bool generates;  // else it only embeds
  void (*build)(ModelBuilder& builder);
};

std::span<const Architecture> all_architectures();
// Null: there is none of that name.
const Architecture* find_architecture(std::string_view name);

// Whether the options fit together. Errors: kInvalidArgument.
Status check_options(const ModelOptions& options);

// The builders, one for each entry.
void build_llama(ModelBuilder& builder);
void build_mixtral(ModelBuilder& builder);
void build_qwen2(ModelBuilder& builder);
void build_qwen2moe(ModelBuilder& builder);
void build_qwen3(ModelBuilder& builder);
void build_qwen3moe(ModelBuilder& builder);
void build_gemma2(ModelBuilder& builder);
void build_gemma3(ModelBuilder& builder);
void build_mistral(ModelBuilder& builder);
void build_falcon(ModelBuilder& builder);
void build_cohere2(ModelBuilder& builder);
void build_deepseek2(ModelBuilder& builder);
void build_mamba(ModelBuilder& builder);
void build_rwkv7(ModelBuilder& builder);
void build_jamba(ModelBuilder& builder);
void build_lfm2(ModelBuilder& builder);
void build_bert(ModelBuilder& builder);
void build_nomic_bert(ModelBuilder& builder);
void build_t5(ModelBuilder& builder);

// Shared by them: the tensors of a gated feed-forward part, "ffn_gate" and so on, of a block
// "blk.0.".
void add_feed_forward(ModelBuilder& builder, std::uint32_t layer);
// "blk.0."
std::string block_name(std::uint32_t layer);

}  // namespace berth::test_models
