// Decoders whose attention keeps less than the usual one.

#include "tests/models/architectures.h"

namespace berth::test_models {
namespace {

// Of deepseek2, for each head: numbers of a key without and with a position, and of a value.
constexpr std::uint32_t kPlainKey = 32;
constexpr std::uint32_t kTurnedKey = 32;
constexpr std::uint32_t kValue = 32;
constexpr std::uint32_t kCompressed = 64;  // of all heads together

void add_compressed_attention(ModelBuilder& b, std::uint32_t layer) {
  const ModelOptions& o = b.options();
  const std::string block = block_name(layer);
  b.norm(block + "attn_norm", o.embedding);
  b.matrix(block + "attn_q_a.weight", o.embedding, kCompressed);
  b.norm(block + "attn_q_a_norm", kCompressed);
  b.matrix(block + "attn_q_b.weight", kCompressed, o.heads * (kPlainKey + kTurnedKey));
  b.matrix(block + "attn_kv_a_mqa.weight", o.embedding, kCompressed + kTurnedKey);
  b.norm(block + "attn_kv_a_norm", kCompressed);
  b.noise(block + "attn_k_b.weight", {kPlainKey, kCompressed, o.heads}, 0.2F);
  b.noise(block + "attn_v_b.weight", {kCompressed, kValue, o.heads}, 0.2F);
  b.residual(layer, block + "attn_output.weight", o.heads * kValue, o.embedding);
}

}  // namespace

void build_falcon(ModelBuilder& b) {
  const ModelOptions& o = b.options();
  b.common_keys("attention.layer_norm_epsilon");
  b.key("attention.head_count_kv", std::uint32_t{1});
  b.rope_keys();
  b.embedding();
  for (std::uint32_t layer = 0; layer < o.layers; ++layer) {
    const std::string block = block_name(layer);
    b.norm_with_bias(block + "attn_norm", o.embedding);
    b.matrix(block + "attn_qkv.weight", o.embedding, o.embedding + 2 * b.head_width());
    b.residual(layer, block + "attn_output.weight", o.embedding, o.embedding);
    b.matrix(block + "ffn_up.weight", o.embedding, o.feed_forward);
    b.residual(layer, block + "ffn_down.weight", o.feed_forward, o.embedding);
  }
  b.constant("output_norm.bias", o.embedding, 0.0F);
  b.output();
}

void build_cohere2(ModelBuilder& b) {
  const ModelOptions& o = b.options();
  b.common_keys("attention.layer_norm_epsilon");
  b.rope_keys();
  b.key("attention.sliding_window", o.sliding_window);
  b.key("logit_scale", 1.0F);
  b.output_embedding();
  for (std::uint32_t layer = 0; layer < o.layers; ++layer) {
    const std::string block = block_name(layer);
    b.norm(block + "attn_norm", o.embedding);
    b.matrix(block + "attn_q.weight", o.embedding, o.embedding);
    b.matrix(block + "attn_k.weight", o.embedding, b.kv_width());
    b.matrix(block + "attn_v.weight", o.embedding, b.kv_width());
    b.residual(layer, block + "attn_output.weight", o.embedding, o.embedding);
    add_feed_forward(b, layer);
  }
  b.output_norm();
}

void build_deepseek2(ModelBuilder& b) {
  const ModelOptions& o = b.options();
  b.common_keys();
  b.key("attention.head_count_kv", std::uint32_t{1});
  b.key("rope.dimension_count", kTurnedKey);
  b.key("rope.freq_base", 10'000.0F);
  b.key("attention.q_lora_rank", kCompressed);
  b.key("attention.kv_lora_rank", kCompressed);
  b.key("attention.key_length", kCompressed + kTurnedKey);
  b.key("attention.value_length", kCompressed);
  b.key("attention.key_length_mla", kPlainKey + kTurnedKey);
  b.key("attention.value_length_mla", kValue);
  // Without experts in any layer; libllama wants to know of them all the same.
  b.key("leading_dense_block_count", o.layers);
  b.key("expert_feed_forward_length", o.feed_forward);
  b.key("expert_count", std::uint32_t{0});
  b.key("expert_used_count", std::uint32_t{0});
  b.key("expert_shared_count", std::uint32_t{0});
  b.key("expert_weights_scale", 1.0F);
  b.embedding();
  for (std::uint32_t layer = 0; layer < o.layers; ++layer) {
    add_compressed_attention(b, layer);
    b.norm(block_name(layer) + "ffn_norm", o.embedding);
    add_feed_forward(b, layer);
  }
  b.output();
}

}  // namespace berth::test_models
