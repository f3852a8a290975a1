#include "supervisor/core/memory/layer_memory.h"

#include <algorithm>
#include <vector>

#include "supervisor/core/memory/saturating.h"

namespace berth::core {
namespace {

// Far above what any model has, and low enough that products of a few of them fit 64 bits.
constexpr std::uint32_t kMaxHeads = 65'536;
constexpr std::uint32_t kMaxWidth = 16U << 20;
constexpr std::uint32_t kMaxTokens = 1U << 30;
constexpr std::uint32_t kMaxCellWidth = 1U << 30;
constexpr std::uint64_t kStateNumberBytes = 4;  // f32, always
// How many vectors of a layer's width are there at once (measured, docs/memory.md).
constexpr std::uint64_t kRwkvWidths = 20;
constexpr std::uint64_t kStateSpaceWidths = 8;

std::uint32_t cell_width(std::uint32_t heads, std::uint32_t length) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(saturating_multiply(heads, length), kMaxCellWidth));
}

Status read_widths(const HeaderKeys& keys, ModelShape& shape) {
  const std::size_t layers = shape.layers.size();
  const auto heads = keys.per_layer("attention.head_count", layers, kMaxHeads);
  if (!heads) return fail(heads.error());
  const bool says_kv = keys.has("attention.head_count_kv");
  const auto kv_heads = keys.per_layer("attention.head_count_kv", layers, kMaxHeads);
  if (!kv_heads) return fail(kv_heads.error());
  const bool mixture = shape.experts_used > 0 && keys.has("expert_feed_forward_length");
  const auto forward = keys.per_layer(
      mixture ? "expert_feed_forward_length" : "feed_forward_length", layers, kMaxWidth);
  if (!forward) return fail(forward.error());

  std::uint32_t usual = 0;
  for (const std::uint32_t count : *heads) {
    if (count > 0 && usual == 0) usual = shape.embedding / count;
  }
  const auto key_length = keys.number("attention.key_length", kMaxWidth, usual);
  if (!key_length) return fail(key_length.error());
  const auto value_length = keys.number("attention.value_length", kMaxWidth, usual);
  if (!value_length) return fail(value_length.error());
  const auto window_keys = keys.number("attention.key_length_swa", kMaxWidth, *key_length);
  if (!window_keys) return fail(window_keys.error());
  const auto window_values = keys.number("attention.value_length_swa", kMaxWidth, *value_length);
  if (!window_values) return fail(window_values.error());
  // Compressed attention keeps one vector for keys and values together.
  const bool compressed = keys.has("attention.key_length_mla");

  for (std::size_t i = 0; i < layers; ++i) {
    LayerShape& layer = shape.layers[i];
    layer.heads = (*heads)[i];
    layer.feed_forward = (*forward)[i];
    const std::uint32_t kv = says_kv ? (*kv_heads)[i] : (*heads)[i];
    layer.keys = cell_width(kv, layer.windowed ? *window_keys : *key_length);
    layer.values = compressed ? 0 : cell_width(kv, layer.windowed ? *window_values : *value_length);
  }
  return {};
}

Status read_windows(const HeaderKeys& keys, const ArchitectureRules& rules, ModelShape& shape) {
  if (rules.window == WindowRule::kNever) return {};
  if (rules.only_layers != 0 && rules.only_layers != shape.layers.size()) return {};
  constexpr std::string_view kWindow = "attention.sliding_window";
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  const auto said = keys.number(kWindow, kMaxTokens);
  if (!said) return fail(said.error());
  if (rules.window == WindowRule::kWithKey && *said == 0) return {};
  const bool own = rules.own_window != 0 && (rules.window == WindowRule::kWithKey || *said == 0);
  shape.sliding_window = own ? rules.own_window : *said;
  if (shape.sliding_window == 0) return {};

  const std::size_t layers = shape.layers.size();
  if (keys.is_list(kPattern)) {
    const auto windowed = keys.per_layer(kPattern, layers, kMaxTokens);
    if (!windowed) return fail(windowed.error());
    for (std::size_t i = 0; i < layers; ++i) shape.layers[i].windowed = (*windowed)[i] != 0;
    return {};
  }
  const auto period = keys.number(kPattern, kMaxTokens, rules.period);
  if (!period) return fail(period.error());
  for (std::size_t i = 0; i < layers; ++i) {
    const std::size_t full = rules.full_first ? 0 : *period - 1;
    // A period of 0 would window every layer; one that neither file nor table says windows none.
    shape.layers[i].windowed = *period == 0 ? keys.has(kPattern) : i % *period != full;
  }
  return {};
}

// Bytes of one sequence's state in a layer that has one.
Result<std::uint64_t> state_bytes(const HeaderKeys& keys, ModelShape& shape) {
  const auto read = [&](std::string_view name, std::uint32_t fallback = 0) {
    return keys.number(name, kMaxWidth, fallback);
  };
  std::uint64_t numbers = 0;
  const auto add = [&](std::uint64_t a, std::uint64_t b) {
    numbers = saturating_add(numbers, saturating_multiply(a, b));
  };
  const std::uint64_t width = shape.embedding;
  const auto head = read("wkv.head_size");
  const auto shift = read("token_shift_count", 2);
  const auto cache = read("shortconv.l_cache");
  const auto convolution = read("ssm.conv_kernel");
  const auto inner = read("ssm.inner_size");
  const auto state = read("ssm.state_size");
  const auto groups = read("ssm.group_count");
  const auto linear = read("kda.head_dim");
  for (const auto* const one :
       {&head, &shift, &cache, &convolution, &inner, &state, &groups, &linear}) {
    if (!*one) return fail(one->error());
  }
  const std::uint64_t before = *convolution > 0 ? *convolution - 1 : 0;
  if (*head > 0) {
    add(*shift, width);
    add(*head, width);
    shape.state_width = kRwkvWidths * width;
  } else if (*cache > 0) {
    add(*cache - 1, width);
  } else if (*linear > 0) {
    const std::uint64_t heads = shape.layers.empty() ? 0 : shape.layers.front().heads;
    add(3 * before, saturating_multiply(heads, *linear));
    add(saturating_multiply(*linear, *linear), heads);
  } else {
    add(before, *inner + 2 * std::uint64_t{*groups} * *state);
    add(*state, *inner);
    shape.state_width = kStateSpaceWidths * *inner;
  }
  return saturating_multiply(numbers, kStateNumberBytes);
}

Status read_states(const HeaderKeys& keys, StateRule rule, ModelShape& shape) {
  if (rule == StateRule::kNone) return {};
  const auto bytes = state_bytes(keys, shape);
  if (!bytes) return fail(bytes.error());
  const auto interval = keys.number("full_attention_interval", kMaxLayers, 4);
  if (!interval) return fail(interval.error());
  constexpr std::string_view kSaid = "attention.recurrent_layers";
  const bool says = keys.is_list(kSaid);
  const auto said = keys.per_layer(kSaid, says ? shape.layers.size() : 0, 1);
  if (!said) return fail(said.error());
  for (std::size_t i = 0; i < shape.layers.size(); ++i) {
    LayerShape& layer = shape.layers[i];
    const bool has_state = rule == StateRule::kEvery || rule == StateRule::kBesides ||
                           (rule == StateRule::kWithoutKv && layer.keys == 0) ||
                           (rule == StateRule::kInterval &&
                            (says ? (*said)[i] != 0 : *interval == 0 || (i + 1) % *interval != 0));
    if (!has_state) continue;
    layer.state_bytes = *bytes;
    if (rule != StateRule::kBesides) layer.keys = layer.values = 0;
  }
  return {};
}

// Some of gemma's layers use the cells of earlier ones.
Status share_cells(const HeaderKeys& keys, ModelShape& shape) {
  constexpr std::uint32_t kOwnOfGemma3n = 20;
  const auto layers = static_cast<std::uint32_t>(shape.layers.size());
  const auto shared = keys.number("attention.shared_kv_layers", kMaxLayers);
  if (!shared) return fail(shared.error());
  std::uint32_t own = layers - std::min(layers, *shared);
  if (*shared == 0 && shape.architecture == "gemma3n") own = std::min(layers, kOwnOfGemma3n);
  for (std::uint32_t i = own; i < layers; ++i) shape.layers[i].keys = shape.layers[i].values = 0;
  return {};
}

}  // namespace

Status read_layer_memory(const HeaderKeys& keys, const ArchitectureRules* rules,
                         ModelShape& shape) {
  static constexpr ArchitectureRules kUnknown;
  const ArchitectureRules& known = rules != nullptr ? *rules : kUnknown;
  shape.encoder = known.encoder;
  shape.guessed = rules == nullptr || known.estimated || keys.has("nextn_predict_layers");
  if (auto read = read_windows(keys, known, shape); !read) return read;
  if (auto read = read_widths(keys, shape); !read) return read;
  const bool has_state = keys.has("ssm.state_size") || keys.has("wkv.head_size");
  const auto state = rules == nullptr && has_state ? StateRule::kWithoutKv : known.state;
  if (auto read = read_states(keys, state, shape); !read) return read;
  if (auto shared = share_cells(keys, shape); !shared) return shared;
  if (known.encoder) {
    for (LayerShape& layer : shape.layers) layer.keys = layer.values = 0;
  }
  return {};
}

}  // namespace berth::core
