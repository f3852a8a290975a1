#include "tests/models/model_builder.h"

#include <cmath>
#include <utility>

#include "tests/models/random.h"

namespace berth::test_models {

void ModelBuilder::common_keys(std::string_view epsilon) {
  key("context_length", options_.context);
  key("embedding_length", options_.embedding);
  key("block_count", options_.layers);
  key("feed_forward_length", options_.feed_forward);
  key("attention.head_count", options_.heads);
  key("attention.head_count_kv", options_.kv_heads);
  key(epsilon, 1e-5F);
  key("vocab_size", options_.vocabulary);
}

void ModelBuilder::rope_keys() {
  key("rope.dimension_count", head_width());
  key("rope.freq_base", 10'000.0F);
}

std::uint64_t ModelBuilder::seed_of(const std::string& name) const {
  return options_.seed * 0x9E3779B97F4A7C15ULL + hash_text(name);
}

std::uint32_t ModelBuilder::control_rows() const {
  return control_tokens(chosen_tokenizer(options_));
}

float ModelBuilder::residual_scale(std::uint32_t layer) const {
  return layer < options_.early_layers ? 1.0F : options_.later_layers;
}

void ModelBuilder::add_matrix(const std::string& name, std::vector<std::uint64_t> shape,
                              const Form& form) {
  const std::uint64_t columns = shape.front();
  const bool fits = columns % block_values(form.type) == 0;
  const std::uint64_t seed = seed_of(name);
  // Uniform numbers have a variance of a third.
  const float scale = std::sqrt(3.0F / static_cast<float>(columns)) * form.scale;
  writer_.add_tensor(name, fits ? form.type : TensorType::kF16, std::move(shape),
                     [=](std::vector<float>& values, std::uint64_t row) {
                       // Each row has its own sequence: rows can be made in any order.
                       Random random(Random(seed + row).next());
                       const float factor = row < form.loud_from ? scale * form.quiet : scale;
                       for (float& value : values) value = random.uniform() * factor;
                     });
}

void ModelBuilder::matrix(const std::string& name, std::uint32_t columns, std::uint32_t rows) {
  add_matrix(name, {columns, rows}, {.type = options_.weights});
}

void ModelBuilder::experts(const std::string& name, std::uint32_t columns, std::uint32_t rows) {
  add_matrix(name, {columns, rows, options_.experts}, {.type = options_.weights});
}

void ModelBuilder::residual(std::uint32_t layer, const std::string& name, std::uint32_t columns,
                            std::uint32_t rows) {
  add_matrix(name, {columns, rows}, {.scale = residual_scale(layer), .type = options_.weights});
}

void ModelBuilder::residual_experts(std::uint32_t layer, const std::string& name,
                                    std::uint32_t columns, std::uint32_t rows) {
  add_matrix(name, {columns, rows, options_.experts},
             {.scale = residual_scale(layer), .type = options_.weights});
}

void ModelBuilder::constant(const std::string& name, std::uint32_t length, float value) {
  table(name, {length}, [value](std::vector<float>& values, std::uint64_t) {
    for (float& each : values) each = value;
  });
}

void ModelBuilder::noise(const std::string& name, std::vector<std::uint64_t> shape, float most) {
  const std::uint64_t seed = seed_of(name);
  table(name, std::move(shape), [=](std::vector<float>& values, std::uint64_t row) {
    Random random(Random(seed + row).next());
    for (float& value : values) value = random.uniform() * most;
  });
}

void ModelBuilder::table(const std::string& name, std::vector<std::uint64_t> shape,
                         GgufWriter::FillRow fill) {
  writer_.add_tensor(name, TensorType::kF32, std::move(shape), std::move(fill));
}

void ModelBuilder::norm(const std::string& name, std::uint32_t length) {
  constant(name + ".weight", length, 1.0F);
}

void ModelBuilder::norm_with_bias(const std::string& name, std::uint32_t length) {
  norm(name, length);
  constant(name + ".bias", length, 0.0F);
}

void ModelBuilder::embedding(float length) {
  add_matrix("token_embd.weight", {options_.embedding, options_.vocabulary},
             {.scale = length, .type = options_.weights});
}

void ModelBuilder::output_embedding(float length) {
  // Not 0: what follows normalises, and the control tokens have to stay different.
  constexpr float kQuiet = 0.02F;
  add_matrix("token_embd.weight", {options_.embedding, options_.vocabulary},
             {control_rows(), kQuiet, length, options_.weights});
}

void ModelBuilder::output_norm(const std::string& name) {
  constant(name + ".weight", options_.embedding, options_.sureness);
}

void ModelBuilder::output() {
  output_norm();
  if (options_.tied_output) return;
  // Of a few hundred random logits the largest is far above 0, which is what control tokens get:
  // greedy decoding does not end by itself.
  Form form{.loud_from = control_rows(), .quiet = 0.0F, .type = options_.weights};
  // As in the files of llama-quantize.
  if (block_values(options_.weights) == 256) form.type = TensorType::kQ6_K;
  add_matrix("output.weight", {options_.embedding, options_.vocabulary}, form);
}

}  // namespace berth::test_models
