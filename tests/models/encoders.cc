// Architectures that read a whole text at once.

#include "tests/models/architectures.h"

namespace berth::test_models {
namespace {

void encoder_keys(ModelBuilder& b) {
  b.common_keys("attention.layer_norm_epsilon");
  b.key("attention.head_count_kv", b.options().heads);
  b.key_truth("attention.causal", false);
}

void add_matrix_with_bias(ModelBuilder& b, const std::string& name, std::uint32_t columns,
                          std::uint32_t rows) {
  b.matrix(name + ".weight", columns, rows);
  b.noise(name + ".bias", {rows}, 0.1F);
}

constexpr std::uint32_t kRelativeBuckets = 32;

// Attention of t5: "enc.blk.0.attn_" and so on.
void add_plain_attention(ModelBuilder& b, const std::string& start) {
  const std::uint32_t width = b.options().embedding;
  b.norm(start + "norm", width);
  for (const char* const part : {"q", "k", "v", "o"}) {
    b.matrix(start + part + ".weight", width, width);
  }
}

void add_plain_feed_forward(ModelBuilder& b, const std::string& block) {
  const ModelOptions& o = b.options();
  b.norm(block + "ffn_norm", o.embedding);
  b.matrix(block + "ffn_up.weight", o.embedding, o.feed_forward);
  b.matrix(block + "ffn_down.weight", o.feed_forward, o.embedding);
}

}  // namespace

void build_bert(ModelBuilder& b) {
  const ModelOptions& o = b.options();
  encoder_keys(b);
  b.embedding();
  b.noise("token_types.weight", {o.embedding, 2}, 0.1F);
  b.noise("position_embd.weight", {o.embedding, o.context}, 0.1F);
  b.norm_with_bias("token_embd_norm", o.embedding);
  for (std::uint32_t layer = 0; layer < o.layers; ++layer) {
    const std::string block = block_name(layer);
    for (const char* const part : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
      add_matrix_with_bias(b, block + part, o.embedding, o.embedding);
    }
    b.norm_with_bias(block + "attn_output_norm", o.embedding);
    add_matrix_with_bias(b, block + "ffn_up", o.embedding, o.feed_forward);
    add_matrix_with_bias(b, block + "ffn_down", o.feed_forward, o.embedding);
    b.norm_with_bias(block + "layer_output_norm", o.embedding);
  }
}

void build_nomic_bert(ModelBuilder& b) {
  const ModelOptions& o = b.options();
  encoder_keys(b);
  b.rope_keys();
  b.embedding();
  b.noise("token_types.weight", {o.embedding, 2}, 0.1F);
  b.norm_with_bias("token_embd_norm", o.embedding);
  for (std::uint32_t layer = 0; layer < o.layers; ++layer) {
    const std::string block = block_name(layer);
    b.matrix(block + "attn_qkv.weight", o.embedding, 3 * o.embedding);
    b.residual(layer, block + "attn_output.weight", o.embedding, o.embedding);
    b.norm_with_bias(block + "attn_output_norm", o.embedding);
    add_feed_forward(b, layer);
    b.norm_with_bias(block + "layer_output_norm", o.embedding);
  }
}

void build_t5(ModelBuilder& b) {
  const ModelOptions& o = b.options();
  b.common_keys();
  b.key("attention.head_count_kv", o.heads);
  b.key("attention.relative_buckets_count", kRelativeBuckets);
  b.key("decoder_start_token_id", std::uint32_t{1});  // the token that begins a text
  b.output_embedding();
  for (std::uint32_t layer = 0; layer < o.layers; ++layer) {
    const std::string encoder = "enc." + block_name(layer);
    const std::string decoder = "dec." + block_name(layer);
    add_plain_attention(b, encoder + "attn_");
    b.noise(encoder + "attn_rel_b.weight", {o.heads, kRelativeBuckets}, 0.5F);
    add_plain_feed_forward(b, encoder);
    add_plain_attention(b, decoder + "attn_");
    b.noise(decoder + "attn_rel_b.weight", {o.heads, kRelativeBuckets}, 0.5F);
    add_plain_attention(b, decoder + "cross_attn_");
    add_plain_feed_forward(b, decoder);
  }
  b.norm("enc.output_norm", o.embedding);
  b.output_norm("dec.output_norm");
}

}  // namespace berth::test_models
