// Architectures with a state instead of, or beside, attention.

#include <cmath>
#include <vector>

#include "tests/models/architectures.h"

namespace berth::test_models {
namespace {

constexpr std::uint32_t kStateWidth = 16;
constexpr std::uint32_t kConvolution = 4;  // tokens that a state space sees at once
constexpr std::uint32_t kShortConvolution = 3;

std::uint32_t inner_width(const ModelOptions& o) {
  return 2 * o.embedding;  // the only one that libllama takes
}

std::uint32_t time_step_rank(const ModelOptions& o) {
  return (o.embedding + 15) / 16;
}

void state_space_keys(ModelBuilder& b) {
  b.key("ssm.conv_kernel", kConvolution);
  b.key("ssm.inner_size", inner_width(b.options()));
  b.key("ssm.state_size", kStateWidth);
  b.key("ssm.time_step_rank", time_step_rank(b.options()));
}

// Mamba, "Linear-time sequence modeling with selective state spaces", 2023.
void add_state_space(ModelBuilder& b, std::uint32_t layer) {
  const ModelOptions& o = b.options();
  const std::string block = block_name(layer);
  const std::uint32_t inner = inner_width(o);
  const std::uint32_t rank = time_step_rank(o);
  b.matrix(block + "ssm_in.weight", o.embedding, 2 * inner);
  b.noise(block + "ssm_conv1d.weight", {kConvolution, inner}, 0.8F);
  b.noise(block + "ssm_conv1d.bias", {inner}, 0.1F);
  b.matrix(block + "ssm_x.weight", inner, rank + 2 * kStateWidth);
  b.matrix(block + "ssm_dt.weight", rank, inner);
  // A time step of about 0.1: softplus(-2.25).
  b.constant(block + "ssm_dt.bias", inner, -2.25F);
  b.table(block + "ssm_a", {kStateWidth, inner}, [](std::vector<float>& values, std::uint64_t) {
    float decay = 0;
    for (float& value : values) value = --decay;
  });
  b.constant(block + "ssm_d", inner, 1.0F);
  b.residual(layer, block + "ssm_out.weight", inner, o.embedding);
}

void add_attention(ModelBuilder& b, std::uint32_t layer) {
  const ModelOptions& o = b.options();
  const std::string block = block_name(layer);
  b.matrix(block + "attn_q.weight", o.embedding, o.embedding);
  b.matrix(block + "attn_k.weight", o.embedding, b.kv_width());
  b.matrix(block + "attn_v.weight", o.embedding, b.kv_width());
  b.residual(layer, block + "attn_output.weight", o.embedding, o.embedding);
}

bool attends(std::uint32_t layer) {
  return layer % 2 == 1;
}

// A layer without KV heads has a state.
void set_layer_kinds(ModelBuilder& b) {
  std::vector<std::int32_t> kv_heads;
  for (std::uint32_t layer = 0; layer < b.options().layers; ++layer) {
    kv_heads.push_back(attends(layer) ? static_cast<std::int32_t>(b.options().kv_heads) : 0);
  }
  b.key_list("attention.head_count_kv", kv_heads);
}

constexpr std::uint32_t kHeadWidth = 64;  // of rwkv7
constexpr std::uint32_t kLowRank = 32;

// What one token gives to the state, and what it takes of it.
void add_time_mix(ModelBuilder& b, std::uint32_t layer) {
  const std::uint32_t width = b.options().embedding;
  const std::string mix = block_name(layer) + "time_mix_";
  // Low-rank parts: decay, learning rate, value residual, gate.
  for (const char* const part : {"w", "a", "v"}) {
    b.noise(mix + part + "0.weight", {width}, 0.5F);
  }
  for (const char* const part : {"w", "a", "v", "g"}) {
    b.matrix(mix + part + "1.weight", width, kLowRank);
    b.matrix(mix + part + "2.weight", kLowRank, width);
  }
  b.table(mix + "lerp_fused.weight", {width, 1, 1, 6},
          [](std::vector<float>& values, std::uint64_t) {
            for (float& value : values) value = 0.5F;
          });
  b.constant(mix + "k_k.weight", width, 0.85F);
  b.constant(mix + "k_a.weight", width, 1.0F);
  b.noise(mix + "r_k.weight", {width}, 0.1F);
  b.matrix(mix + "key.weight", width, width);
  b.matrix(mix + "value.weight", width, width);
  b.matrix(mix + "receptance.weight", width, width);
  b.norm_with_bias(mix + "ln", width);
  b.residual(layer, mix + "output.weight", width, width);
}

void rwkv7_keys(ModelBuilder& b) {
  b.common_keys("attention.layer_norm_epsilon");
  b.key("attention.head_count", std::uint32_t{0});
  b.key("attention.head_count_kv", std::uint32_t{0});
  b.key("wkv.head_size", kHeadWidth);
  b.key("token_shift_count", std::uint32_t{2});
  for (const char* const rank : {"decay", "iclr", "value_residual_mix", "gate"}) {
    b.key(std::string("attention.") + rank + "_lora_rank", kLowRank);
  }
}

}  // namespace

void build_mamba(ModelBuilder& b) {
  const ModelOptions& o = b.options();
  b.common_keys();
  for (const char* const unused :
       {"feed_forward_length", "attention.head_count", "attention.head_count_kv"}) {
    b.key(unused, std::uint32_t{0});
  }
  state_space_keys(b);
  b.embedding();
  for (std::uint32_t layer = 0; layer < o.layers; ++layer) {
    b.norm(block_name(layer) + "attn_norm", o.embedding);
    add_state_space(b, layer);
  }
  b.output();
}

void build_jamba(ModelBuilder& b) {
  const ModelOptions& o = b.options();
  b.common_keys();
  set_layer_kinds(b);
  state_space_keys(b);
  b.embedding();
  for (std::uint32_t layer = 0; layer < o.layers; ++layer) {
    const std::string block = block_name(layer);
    b.norm(block + "attn_norm", o.embedding);
    if (attends(layer)) {
      add_attention(b, layer);
    } else {
      add_state_space(b, layer);
      b.norm(block + "ssm_dt_norm", time_step_rank(o));
      b.norm(block + "ssm_b_norm", kStateWidth);
      b.norm(block + "ssm_c_norm", kStateWidth);
    }
    b.norm(block + "ffn_norm", o.embedding);
    add_feed_forward(b, layer);
  }
  b.output();
}

void build_lfm2(ModelBuilder& b) {
  const ModelOptions& o = b.options();
  b.common_keys();
  b.rope_keys();
  set_layer_kinds(b);
  b.key("shortconv.l_cache", kShortConvolution);
  b.output_embedding();
  for (std::uint32_t layer = 0; layer < o.layers; ++layer) {
    const std::string block = block_name(layer);
    b.norm(block + "attn_norm", o.embedding);
    if (attends(layer)) {
      add_attention(b, layer);
      b.norm(block + "attn_q_norm", b.head_width());
      b.norm(block + "attn_k_norm", b.head_width());
    } else {
      b.noise(block + "shortconv.conv.weight", {kShortConvolution, o.embedding}, 1.0F);
      b.matrix(block + "shortconv.in_proj.weight", o.embedding, 3 * o.embedding);
      b.residual(layer, block + "shortconv.out_proj.weight", o.embedding, o.embedding);
    }
    b.norm(block + "ffn_norm", o.embedding);
    add_feed_forward(b, layer);
  }
  b.output_norm("token_embd_norm");
}

void build_rwkv7(ModelBuilder& b) {
  const ModelOptions& o = b.options();
  rwkv7_keys(b);
  b.embedding();
  b.norm_with_bias("token_embd_norm", o.embedding);
  for (std::uint32_t layer = 0; layer < o.layers; ++layer) {
    const std::string block = block_name(layer);
    b.norm_with_bias(block + "attn_norm", o.embedding);
    b.norm_with_bias(block + "attn_norm_2", o.embedding);
    add_time_mix(b, layer);
    b.table(block + "channel_mix_lerp_k.weight", {o.embedding, 1, 1},
            [](std::vector<float>& values, std::uint64_t) {
              for (float& value : values) value = 0.5F;
            });
    b.matrix(block + "channel_mix_key.weight", o.embedding, o.feed_forward);
    b.residual(layer, block + "channel_mix_value.weight", o.feed_forward, o.embedding);
  }
  b.constant("output_norm.bias", o.embedding, 0.0F);
  b.output();
}

}  // namespace berth::test_models
