#include "supervisor/core/memory/model_shape.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "common/text.h"
#include "supervisor/core/memory/architecture.h"
#include "supervisor/core/memory/header_keys.h"
#include "supervisor/core/memory/layer_memory.h"
#include "supervisor/core/memory/saturating.h"

namespace berth::core {
namespace {

constexpr std::uint32_t kMaxWidth = 16U << 20;
constexpr std::uint32_t kMaxExperts = 4096;

tl::unexpected<Error> bad(const std::string& what) {
  return fail(Reason::kInvalidArgument, what);
}

std::string shown(const gguf::Tensor& tensor) {
  constexpr std::size_t kMaxShownBytes = 63;
  return "tensor '" + printable_line(tensor.name, kMaxShownBytes) + "'";
}

// 3 of "blk.3.attn_q.weight"; nothing where the tensor is of no layer.
std::optional<std::uint32_t> layer_of(std::string_view name) {
  constexpr std::string_view kBlock = "blk.";
  const std::size_t at = name.find(kBlock);
  // Encoders with a decoder have "enc.blk.3." and "dec.blk.3.".
  if (at != 0 && at != 4) return std::nullopt;
  const std::string_view rest = name.substr(at + kBlock.size());
  std::uint32_t layer = 0;
  const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), layer);
  if (parsed.ec != std::errc() || parsed.ptr == rest.data() + rest.size() || *parsed.ptr != '.') {
    return std::nullopt;
  }
  return layer;
}

// Of the tensors that are of no layer, what libllama puts with the output; all others are the
// input's, which stays in the host.
bool of_output(std::string_view name) {
  constexpr std::array<std::string_view, 4> kStarts = {"output", "cls", "dec.output", "enc.output"};
  return std::any_of(kStarts.begin(), kStarts.end(),
                     [&](std::string_view start) { return name.starts_with(start); });
}

// Matrices of these types ggml's processor backend keeps in an order of its own, where the
// processor has AVX2 (ggml-cpu/repack.cpp).
bool repacks(const gguf::Tensor& tensor) {
  constexpr std::array<std::string_view, 5> kTypes = {"Q4_0", "Q4_K", "Q2_K", "IQ4_NL", "MXFP4"};
  constexpr std::uint64_t kRows = 8;
  const std::string_view type = gguf::type_name(tensor.type);
  return tensor.shape[1] % kRows == 0 &&
         std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

// Also one that is a half of another matrix.
bool is_gate(const gguf::Tensor& tensor, const LayerShape& layer) {
  const std::string_view name = tensor.name;
  if (name.find(".ffn_gate_inp") != std::string_view::npos) return false;
  if (name.find(".ffn_gate") != std::string_view::npos) return true;
  return name.find(".ffn_up.") != std::string_view::npos &&
         tensor.shape[1] == 2ULL * layer.feed_forward;
}

Status add_tensors(const std::vector<gguf::Tensor>& tensors, ModelShape& shape) {
  const gguf::Tensor* embedding = nullptr;
  bool has_output = false;
  for (const gguf::Tensor& tensor : tensors) {
    if (const auto layer = layer_of(tensor.name)) {
      if (*layer >= shape.layers.size()) {
        return bad(shown(tensor) + " is of layer " + std::to_string(*layer) +
                   ", but the model says that it has " + std::to_string(shape.layers.size()));
      }
      std::uint64_t& weights = shape.layers[*layer].weights;
      weights = saturating_add(weights, tensor.bytes);
      shape.largest_matrix = std::max(shape.largest_matrix, tensor.bytes);
      if (is_gate(tensor, shape.layers[*layer])) shape.layers[*layer].gated = true;
      continue;
    }
    if (tensor.name == "token_embd.weight") embedding = &tensor;
    if (tensor.name == "output.weight") has_output = true;
    std::uint64_t& weights = of_output(tensor.name) ? shape.output_weights : shape.input_weights;
    weights = saturating_add(weights, tensor.bytes);
  }
  if (embedding == nullptr) return {};
  shape.vocabulary = embedding->shape[1];
  if (has_output || shape.encoder) return {};
  shape.tied_output = embedding->bytes;
  shape.tied_repacks = repacks(*embedding);
  shape.output_weights = saturating_add(shape.output_weights, embedding->bytes);
  return {};
}

}  // namespace

Result<ModelShape> model_shape(const gguf::WholeModel& model) {
  const HeaderKeys keys(model.first);
  ModelShape shape;
  shape.architecture = model.summary.architecture;
  const auto layers = keys.number("block_count", kMaxLayers);
  if (!layers) return fail(layers.error());
  if (*layers == 0) {
    return bad(keys.shown("block_count") + " is missing: how many layers are there?");
  }
  const auto width = keys.number("embedding_length", kMaxWidth);
  if (!width) return fail(width.error());
  if (*width == 0) {
    return bad(keys.shown("embedding_length") + " is missing: how wide is the model?");
  }
  const auto experts = keys.number("expert_used_count", kMaxExperts);
  if (!experts) return fail(experts.error());
  shape.layers.resize(*layers);
  shape.embedding = *width;
  shape.experts_used = *experts;
  shape.file_bytes = model.summary.file_bytes;
  shape.declared_context = model.summary.declared_context;
  shape.vocabulary = model.summary.vocabulary;
  const auto merges = model.first.metadata.find("tokenizer.ggml.merges");
  if (merges != model.first.metadata.end()) {
    if (const auto* list = std::get_if<gguf::Array>(&merges->second)) shape.merges = list->size;
  }

  const ArchitectureRules* const rules = find_architecture(shape.architecture);
  if (auto read = read_layer_memory(keys, rules, shape); !read) return fail(read.error());
  if (auto added = add_tensors(model.tensors, shape); !added) return fail(added.error());
  return shape;
}

Result<ModelShape> adapter_shape(const gguf::WholeModel& adapter) {
  ModelShape shape;
  shape.architecture = adapter.summary.architecture;
  shape.file_bytes = adapter.summary.file_bytes;
  for (const gguf::Tensor& tensor : adapter.tensors) {
    const auto layer = layer_of(tensor.name);
    if (!layer) {
      std::uint64_t& weights = of_output(tensor.name) ? shape.output_weights : shape.input_weights;
      weights = saturating_add(weights, tensor.bytes);
      continue;
    }
    if (*layer >= kMaxLayers) {
      return bad(shown(tensor) + " is of layer " + std::to_string(*layer) + "; at most " +
                 std::to_string(kMaxLayers) + " layers are allowed");
    }
    if (*layer >= shape.layers.size()) shape.layers.resize(*layer + 1);
    std::uint64_t& weights = shape.layers[*layer].weights;
    weights = saturating_add(weights, tensor.bytes);
  }
  return shape;
}

}  // namespace berth::core
