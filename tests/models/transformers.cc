// Architectures of decoders with attention in every layer.

#include <cmath>

#include "tests/models/architectures.h"

namespace berth::test_models {
namespace {

// In what they differ from llama.
struct Decoder {
  bool biases = false;      // of queries, keys and values
  bool head_norms = false;  // of each head's queries and keys
  bool post_norms = false;  // also after attention and feed-forward part
  bool experts = false;     // instead of one feed-forward part
  bool shared_expert = false;
  bool always_tied = false;  // there is no output.weight
};

void add_attention(ModelBuilder& b, std::uint32_t layer, const Decoder& decoder) {
  const ModelOptions& o = b.options();
  const std::string block = block_name(layer);
  b.norm(block + "attn_norm", o.embedding);
  b.matrix(block + "attn_q.weight", o.embedding, o.embedding);
  b.matrix(block + "attn_k.weight", o.embedding, b.kv_width());
  b.matrix(block + "attn_v.weight", o.embedding, b.kv_width());
  if (decoder.biases) {
    b.noise(block + "attn_q.bias", {o.embedding}, 0.1F);
    b.noise(block + "attn_k.bias", {b.kv_width()}, 0.1F);
    b.noise(block + "attn_v.bias", {b.kv_width()}, 0.1F);
  }
  if (decoder.head_norms) {
    b.norm(block + "attn_q_norm", b.head_width());
    b.norm(block + "attn_k_norm", b.head_width());
  }
  b.residual(layer, block + "attn_output.weight", o.embedding, o.embedding);
  if (decoder.post_norms) {
    b.constant(block + "post_attention_norm.weight", o.embedding, 1.0F);
    b.constant(block + "post_ffw_norm.weight", o.embedding, 1.0F);
  }
}

void add_experts(ModelBuilder& b, std::uint32_t layer, const Decoder& decoder) {
  const ModelOptions& o = b.options();
  const std::string block = block_name(layer);
  b.noise(block + "ffn_gate_inp.weight", {o.embedding, o.experts}, 0.5F);
  b.experts(block + "ffn_gate_exps.weight", o.embedding, o.feed_forward);
  b.experts(block + "ffn_up_exps.weight", o.embedding, o.feed_forward);
  b.residual_experts(layer, block + "ffn_down_exps.weight", o.feed_forward, o.embedding);
  if (!decoder.shared_expert) return;
  b.noise(block + "ffn_gate_inp_shexp.weight", {o.embedding}, 0.5F);
  b.matrix(block + "ffn_gate_shexp.weight", o.embedding, o.feed_forward);
  b.matrix(block + "ffn_up_shexp.weight", o.embedding, o.feed_forward);
  b.residual(layer, block + "ffn_down_shexp.weight", o.feed_forward, o.embedding);
}

void add_decoder(ModelBuilder& b, const Decoder& decoder) {
  const ModelOptions& o = b.options();
  b.common_keys();
  b.rope_keys();
  if (decoder.experts) {
    b.key("expert_count", o.experts);
    b.key("expert_used_count", o.experts_used);
  }
  if (decoder.always_tied) {
    // gemma multiplies it by the root of the width.
    b.output_embedding(1.0F / std::sqrt(static_cast<float>(o.embedding)));
  } else {
    b.embedding();
  }
  for (std::uint32_t layer = 0; layer < o.layers; ++layer) {
    add_attention(b, layer, decoder);
    b.norm(block_name(layer) + "ffn_norm", o.embedding);
    if (decoder.experts) {
      add_experts(b, layer, decoder);
    } else {
      add_feed_forward(b, layer);
    }
  }
  if (decoder.always_tied) {
    b.output_norm();
  } else {
    b.output();
  }
}

// Every other layer sees only the last tokens.
void window_keys(ModelBuilder& b) {
  b.key("attention.sliding_window", b.options().sliding_window);
  b.key("attention.sliding_window_pattern", std::uint32_t{2});
  b.key("attention.key_length", b.head_width());
  b.key("attention.value_length", b.head_width());
}

}  // namespace

void add_feed_forward(ModelBuilder& b, std::uint32_t layer) {
  const ModelOptions& o = b.options();
  const std::string block = block_name(layer);
  b.matrix(block + "ffn_gate.weight", o.embedding, o.feed_forward);
  b.matrix(block + "ffn_up.weight", o.embedding, o.feed_forward);
  b.residual(layer, block + "ffn_down.weight", o.feed_forward, o.embedding);
}

void build_llama(ModelBuilder& builder) {
  add_decoder(builder, {});
}

void build_mistral(ModelBuilder& builder) {
  builder.key("attention.sliding_window", builder.options().sliding_window);
  add_decoder(builder, {});
}

void build_mixtral(ModelBuilder& builder) {
  add_decoder(builder, {.experts = true});
}

void build_qwen2(ModelBuilder& builder) {
  add_decoder(builder, {.biases = true});
}

void build_qwen2moe(ModelBuilder& builder) {
  builder.key("expert_feed_forward_length", builder.options().feed_forward);
  builder.key("expert_shared_feed_forward_length", builder.options().feed_forward);
  add_decoder(builder, {.biases = true, .experts = true, .shared_expert = true});
}

void build_qwen3(ModelBuilder& builder) {
  add_decoder(builder, {.head_norms = true});
}

void build_qwen3moe(ModelBuilder& builder) {
  builder.key("expert_feed_forward_length", builder.options().feed_forward);
  add_decoder(builder, {.head_norms = true, .experts = true});
}

void build_gemma2(ModelBuilder& builder) {
  window_keys(builder);
  builder.key("attn_logit_softcapping", 50.0F);
  builder.key("final_logit_softcapping", 30.0F);
  add_decoder(builder, {.post_norms = true, .always_tied = true});
}

void build_gemma3(ModelBuilder& builder) {
  window_keys(builder);
  add_decoder(builder, {.head_norms = true, .post_norms = true, .always_tied = true});
}

}  // namespace berth::test_models
