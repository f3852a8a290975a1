#include "supervisor/core/memory/working_memory.h"

#include <algorithm>

#include "supervisor/core/memory/saturating.h"

namespace berth::core {
namespace {

constexpr std::uint32_t kCellPadding = 256;  // libllama rounds the pool up to it
constexpr std::uint32_t kMicroBatch = 512;   // worker/engine/llama_context.h
constexpr std::uint32_t kEmbedMax = 8192;    // worker/engine/llama_engine.cc
constexpr std::uint64_t kFloatBytes = 4;
constexpr std::uint64_t kMaskBytes = 2;  // f16 with flash attention

std::uint32_t padded(std::uint64_t cells) {
  const std::uint64_t up = (cells + kCellPadding - 1) / kCellPadding * kCellPadding;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(up, 0xFFFF'FF00U));
}

std::uint64_t product(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  return saturating_multiply(saturating_multiply(a, b), c);
}

// Numbers for each token that are alive at once in the busiest moment of a layer.
std::uint64_t busiest_width(const ModelShape& shape, const LayerShape& layer) {
  const std::uint64_t width = shape.embedding;
  const std::uint64_t used = std::max<std::uint64_t>(shape.experts_used, 1);
  const std::uint64_t forward = saturating_multiply(layer.feed_forward, used);
  const std::uint64_t alive = layer.gated
                                  ? saturating_add(saturating_multiply(3, forward), 5 * width)
                                  : saturating_add(saturating_multiply(2, forward), 3 * width);
  return layer.state_bytes > 0 ? std::max(alive, shape.state_width) : alive;
}

}  // namespace

ContextShape context_shape(const ModelShape& shape, const ServeShape& serve, bool is_draft,
                           bool has_draft) {
  ContextShape context;
  context.sequences = std::max<std::uint32_t>(serve.sequences, 1);
  context.kv_type = serve.kv_type;
  context.flash_attention = serve.flash_attention != FlashAttention::kOff;
  context.embeds = serve.embeds || shape.encoder;
  std::uint64_t tokens = std::max<std::uint32_t>(serve.window, 1);
  if (context.embeds) {
    // One micro-batch takes it all, in equal parts of the sequences.
    tokens = std::min<std::uint64_t>(tokens, kEmbedMax);
    if (shape.encoder && shape.declared_context > 0) {
      tokens = std::min<std::uint64_t>(tokens, shape.declared_context);
    }
    const std::uint64_t each = (tokens + context.sequences - 1) / context.sequences;
    tokens = each * context.sequences;
    context.micro_batch = static_cast<std::uint32_t>(tokens);
    context.outputs = context.micro_batch;
  } else {
    context.micro_batch = std::max(1U, std::min(serve.batch, kMicroBatch));
    const std::uint64_t each = has_draft ? 1ULL + serve.draft_tokens : 1;
    context.outputs = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(each * context.sequences, context.micro_batch));
    if (is_draft) context.outputs = context.sequences;
  }
  context.cells = padded(tokens);
  const std::uint64_t seen =
      saturating_multiply(shape.sliding_window, context.sequences) + context.micro_batch;
  context.window_cells = padded(std::min<std::uint64_t>(context.cells, seen));
  return context;
}

WorkingMemory working_memory(const ModelShape& shape, const ContextShape& context) {
  const std::uint64_t tokens = context.micro_batch;
  const std::uint64_t width = shape.embedding;
  bool all = shape.encoder;
  bool windowed = false;
  std::uint64_t alive = 0;
  std::uint64_t scores = 0;  // without flash attention all of them are there at once
  for (std::size_t i = 0; i < shape.layers.size(); ++i) {
    const LayerShape& layer = shape.layers[i];
    // The last layer's second half is computed only for tokens that have an output.
    const bool is_short = i + 1 == shape.layers.size() && !context.embeds;
    alive = std::max(alive, is_short ? 5 * width : busiest_width(shape, layer));
    if (layer.keys == 0 && !shape.encoder) continue;
    (layer.windowed ? windowed : all) = true;
    const std::uint64_t cells = layer.windowed ? context.window_cells : context.cells;
    scores = std::max(scores, product(layer.heads, cells, tokens));
  }
  const std::uint64_t seen =
      (all ? std::uint64_t{context.cells} : 0) + (windowed ? context.window_cells : 0);
  std::uint64_t masks = product(seen, tokens, kMaskBytes);
  std::uint64_t layer = product(alive, tokens, kFloatBytes);
  if (!context.flash_attention) {
    masks = saturating_multiply(masks, 2);
    layer = std::max(layer, saturating_add(saturating_multiply(scores, kFloatBytes),
                                           product(7 * width, tokens, kFloatBytes)));
  }
  const std::uint64_t logits =
      context.embeds ? 0 : product(shape.vocabulary, context.outputs, kFloatBytes);
  const std::uint64_t output = saturating_add(logits, product(5 * width, tokens, kFloatBytes));
  const std::uint64_t results = context.embeds
                                    ? product(width, context.sequences, kFloatBytes)
                                    : product(shape.vocabulary, context.outputs, kFloatBytes);

  WorkingMemory working;
  const std::uint64_t compute = saturating_add(masks, std::max(layer, output));
  working.device = compute;
  working.host = saturating_add(compute, results);
  working.inputs = saturating_add(masks, product(width, tokens, kFloatBytes));
  working.input =
      saturating_add(saturating_add(masks, product(4 * width, tokens, kFloatBytes)), results);
  return working;
}

}  // namespace berth::core
