#include "tests/models/random_model.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <utility>

namespace berth::test_models {

namespace {

// SplitMix64: small, fast, and the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBULL;
    return mixed ^ (mixed >> 31U);
  }

  // In [-1, 1).
  float uniform() {
    return static_cast<float>(static_cast<std::int32_t>(next() >> 40U)) * 0x1p-23F - 1.0F;
  }

 private:
  std::uint64_t state_;
};

std::uint64_t hash_text(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : text) {
    hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001B3ULL;
  }
  return hash;
}

// Adds the tensors of one model.
class Weights {
 public:
  Weights(GgufWriter& writer, const ModelOptions& options) : writer_(writer), options_(options) {}

  // Rows of unit variance over `columns`, so that activations keep their size. Rows before
  // `silent_rows` are zero.
  void add_matrix(const std::string& name, std::uint32_t columns, std::uint32_t rows,
                  std::uint32_t silent_rows = 0) {
    const std::uint64_t seed = options_.seed * 0x9E3779B97F4A7C15ULL + hash_text(name);
    const float scale = std::sqrt(3.0F / static_cast<float>(columns));
    writer_.add_tensor(name, options_.weights, {columns, rows},
                       [=](std::vector<float>& values, std::uint64_t row) {
                         // Each row has its own sequence: rows can be made in any order.
                         Random random(Random(seed + row).next());
                         const float factor = row < silent_rows ? 0.0F : scale;
                         for (float& value : values) value = random.uniform() * factor;
                       });
  }

  void add_norm(const std::string& name) {
    writer_.add_tensor(name, TensorType::kF32, {options_.embedding},
                       [](std::vector<float>& values, std::uint64_t) {
                         for (float& value : values) value = 1.0F;
                       });
  }

  void add_all() {
    const ModelOptions& o = options_;
    const std::uint32_t kv_width = o.embedding / o.heads * o.kv_heads;
    add_matrix("token_embd.weight", o.embedding, o.vocabulary);
    for (std::uint32_t i = 0; i < o.layers; ++i) {
      const std::string block = "blk." + std::to_string(i) + ".";
      add_norm(block + "attn_norm.weight");
      add_matrix(block + "attn_q.weight", o.embedding, o.embedding);
      add_matrix(block + "attn_k.weight", o.embedding, kv_width);
      add_matrix(block + "attn_v.weight", o.embedding, kv_width);
      add_matrix(block + "attn_output.weight", o.embedding, o.embedding);
      add_norm(block + "ffn_norm.weight");
      add_matrix(block + "ffn_gate.weight", o.embedding, o.feed_forward);
      add_matrix(block + "ffn_up.weight", o.embedding, o.feed_forward);
      add_matrix(block + "ffn_down.weight", o.feed_forward, o.embedding);
    }
    add_norm("output_norm.weight");
    // Of a few hundred random logits the largest is far above 0, which is what control tokens get:
    // greedy decoding does not end by itself.
    if (!o.tied_output) {
      add_matrix("output.weight", o.embedding, o.vocabulary, control_tokens(o.tokenizer));
    }
  }

 private:
  GgufWriter& writer_;
  const ModelOptions& options_;
};

Status check(const ModelOptions& o) {
  const auto bad = [](const char* what) { return fail(Reason::kInvalidArgument, what); };
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
  if (o.weights == TensorType::kQ8_0 && (o.embedding % 32 != 0 || o.feed_forward % 32 != 0)) {
    return bad("with q8_0 the embedding and the feed-forward width must be multiples of 32");
  }
  return {};
}

void set_hyper_parameters(GgufWriter& writer, const ModelOptions& o) {
  const auto key = [&](const char* name) { return o.architecture + "." + name; };
  writer.set_text("general.architecture", o.architecture);
  writer.set_text("general.name", o.name);
  writer.set_text("general.type", "model");
  writer.set_u32("general.file_type", o.weights == TensorType::kQ8_0  ? 7
                                      : o.weights == TensorType::kF16 ? 1
                                                                      : 0);
  writer.set_u32(key("context_length"), o.context);
  writer.set_u32(key("embedding_length"), o.embedding);
  writer.set_u32(key("block_count"), o.layers);
  writer.set_u32(key("feed_forward_length"), o.feed_forward);
  writer.set_u32(key("attention.head_count"), o.heads);
  writer.set_u32(key("attention.head_count_kv"), o.kv_heads);
  writer.set_f32(key("attention.layer_norm_rms_epsilon"), 1e-5F);
  writer.set_u32(key("rope.dimension_count"), o.embedding / o.heads);
  writer.set_f32(key("rope.freq_base"), 10'000.0F);
  writer.set_u32(key("vocab_size"), o.vocabulary);
}

}  // namespace

Result<GgufWriter> make_model(const ModelOptions& options) {
  if (auto sound = check(options); !sound) return fail(std::move(sound).error());
  GgufWriter writer;
  set_hyper_parameters(writer, options);
  if (auto set = set_tokenizer(writer, options.tokenizer, options.vocabulary); !set) {
    return fail(std::move(set).error());
  }
  if (options.chat_template) {
    writer.set_text("tokenizer.chat_template", *options.chat_template);
  }
  Weights(writer, options).add_all();
  return writer;
}

std::vector<std::string> model_files(const std::string& path, std::uint32_t shards) {
  if (shards <= 1) return {path};
  constexpr std::string_view kExtension = ".gguf";
  std::string stem = path;
  if (stem.ends_with(kExtension)) stem.resize(stem.size() - kExtension.size());
  std::vector<std::string> files;
  for (std::uint32_t i = 1; i <= shards; ++i) {
    std::array<char, 48> tail{};
    std::snprintf(tail.data(), tail.size(), "-%05u-of-%05u.gguf", i, shards);
    files.push_back(stem + tail.data());
  }
  return files;
}

Result<std::vector<std::string>> write_model(const ModelOptions& options, const std::string& path) {
  auto model = make_model(options);
  if (!model) return fail(std::move(model).error());
  auto files = model_files(path, options.shards);
  const Status written =
      options.shards > 1 ? model->write_shards(files) : model->write(files.front());
  if (!written) return fail(written.error());
  return files;
}

}  // namespace berth::test_models
