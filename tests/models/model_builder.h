#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/models/gguf_writer.h"
#include "tests/models/random_model.h"

namespace berth::test_models {

// Adds the keys and tensors of one model to a writer; what an architecture is made of. The values
// of a tensor come from the seed and the tensor's name alone, so that two models of the same widths
// and seed share what they both have. Lives shorter than the writer; the tensors' values are made
// only when the writer writes.
class ModelBuilder {
 public:
  ModelBuilder(GgufWriter& writer, std::string_view architecture, const ModelOptions& options)
      : writer_(writer), prefix_(std::string(architecture) + "."), options_(options) {}

  [[nodiscard]] const ModelOptions& options() const { return options_; }
  [[nodiscard]] std::uint32_t head_width() const { return options_.embedding / options_.heads; }
  [[nodiscard]] std::uint32_t kv_width() const { return head_width() * options_.kv_heads; }

  // Keys, named without the architecture: "block_count".
  void key(std::string_view name, std::uint32_t value) { writer_.set_u32(full(name), value); }
  void key(std::string_view name, float value) { writer_.set_f32(full(name), value); }
  void key_truth(std::string_view name, bool value) { writer_.set_bool(full(name), value); }
  void key_list(std::string_view name, const std::vector<std::int32_t>& values) {
    writer_.set_i32s(full(name), values);
  }
  // Context, embedding, layers, feed-forward width, heads, and the epsilon of the norms.
  void common_keys(std::string_view epsilon = "attention.layer_norm_rms_epsilon");
  void rope_keys();

  // In the chosen type, or in f16 where `columns` are not whole blocks of it: rows of unit length,
  // so that activations keep their size.
  void matrix(const std::string& name, std::uint32_t columns, std::uint32_t rows);
  // One matrix for each expert.
  void experts(const std::string& name, std::uint32_t columns, std::uint32_t rows);
  // A matrix whose result is added to the residual stream of `layer`: smaller by
  // options.later_layers but in the first options.early_layers.
  void residual(std::uint32_t layer, const std::string& name, std::uint32_t columns,
                std::uint32_t rows);
  void residual_experts(std::uint32_t layer, const std::string& name, std::uint32_t columns,
                        std::uint32_t rows);
  // f32, all `value`.
  void constant(const std::string& name, std::uint32_t length, float value);
  // f32, around 0.
  void noise(const std::string& name, std::vector<std::uint64_t> shape, float most);
  // f32, `fill` for each row.
  void table(const std::string& name, std::vector<std::uint64_t> shape, GgufWriter::FillRow fill);
  // A norm's weight of ones and, where it has one, its bias of zeros.
  void norm(const std::string& name, std::uint32_t length);
  void norm_with_bias(const std::string& name, std::uint32_t length);

  // token_embd.weight with rows of that length.
  void embedding(float length = 1.0F);
  // Of a model whose output always is the embedding: the control tokens' rows are so short that
  // greedy decoding never says one.
  void output_embedding(float length = 1.0F);
  // The last norm, which makes the model sure.
  void output_norm(const std::string& name = "output_norm");
  // output_norm.weight, and output.weight unless it is tied.
  void output();

 private:
  struct Form {
    std::uint32_t loud_from = 0;  // rows before it are smaller by `quiet`
    float quiet = 1.0F;
    float scale = 1.0F;
    TensorType type = TensorType::kF16;
  };
  [[nodiscard]] std::string full(std::string_view name) const {
    return prefix_ + std::string(name);
  }
  void add_matrix(const std::string& name, std::vector<std::uint64_t> shape, const Form& form);
  [[nodiscard]] float residual_scale(std::uint32_t layer) const;
  [[nodiscard]] std::uint32_t control_rows() const;
  [[nodiscard]] std::uint64_t seed_of(const std::string& name) const;

  GgufWriter& writer_;
  std::string prefix_;
  const ModelOptions& options_;
};

}  // namespace berth::test_models
