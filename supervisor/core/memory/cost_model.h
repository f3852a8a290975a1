#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.h"
#include "supervisor/core/memory/charge.h"
#include "supervisor/core/memory/domain.h"
#include "supervisor/core/memory/model_shape.h"
#include "supervisor/core/memory/placement.h"

namespace berth::core {

enum class FlashAttention : std::uint8_t { kAuto, kOn, kOff };

// How a model is served, as far as that costs memory. The defaults are the worker's.
struct ServeShape {
  std::uint32_t window = 4096;  // tokens: the pool of cells that all sequences share
  std::uint32_t sequences = 1;
  std::uint32_t batch = 512;  // tokens of one decode
  std::uint32_t kv_type = 1;  // a ggml_type; 1: f16
  FlashAttention flash_attention = FlashAttention::kAuto;
  std::uint32_t draft_tokens = 8;  // of a draft model, if there is one
  bool embeds = false;             // also where the model could generate
  std::uint32_t threads = 1;       // of the worker, each of which has buffers
  // Whether this processor's ggml keeps matrices of some types in an order of its own.
  bool repacks = true;
  // What a process takes of a device before it puts anything there: its driver's context. Bytes.
  std::uint64_t device_context = 400ULL << 20;

  bool operator==(const ServeShape&) const = default;
};

// The ggml_type of a name as the configuration has it ("f16", "q8_0").
std::optional<std::uint32_t> kv_type_from_name(std::string_view name);

// One layer, at the window that the cost was made for. Bytes.
struct LayerCost {
  std::uint64_t weights = 0;
  std::uint64_t kv = 0;
  // What one cell more adds to `kv`; 0 where it does not grow (a sliding window, a state).
  std::uint64_t kv_per_cell = 0;

  bool operator==(const LayerCost&) const = default;
};

// One model of an instance: the model itself, or its draft. Bytes.
struct PartCost {
  std::uint64_t host_weights = 0;  // in the host wherever the layers are
  // In the order of the layers; the output is the last, so it is never empty.
  std::vector<LayerCost> layers;
  // What the output costs less where it is in the host, because the embedding that is there anyway
  // serves as it.
  std::uint64_t shared_output = 0;
  std::uint64_t host_working = 0;    // while any layer is in the host
  std::uint64_t input_working = 0;   // in the host while none is
  std::uint64_t device_working = 0;  // on each device that has layers
  // More in the host and on each device where several devices have all layers: libllama begins
  // the next micro-batches while one is computed, with inputs of their own (pipeline parallelism,
  // src/llama-context.cpp; GGML_SCHED_MAX_COPIES is 4).
  std::uint64_t pipelined_working = 0;
  // More on the first of them while some layers are in the host: for large batches libllama copies
  // one matrix of theirs after the other to it.
  std::uint64_t borrowed_working = 0;

  bool operator==(const PartCost&) const = default;
};

// What an instance costs, in pieces that a planner can put anywhere: charge_of() sums them without
// the shape. A value.
struct ModelCost {
  std::vector<PartCost> parts;  // the model first, then its draft
  std::uint64_t host_overhead = 0;
  std::uint64_t device_overhead = 0;  // on each device that is used
  std::uint32_t cells = 0;            // of the pool, as libllama rounds the window up
  // How far the sum of a domain may be off: the larger of both.
  std::uint32_t error_percent = 0;
  std::uint64_t error_bytes = 0;

  bool operator==(const ModelCost&) const = default;
};

// Pure arithmetic on numbers that model_shape() has bounded; sums stay at the greatest number.
// `draft` may be null. Of `adapters` only weights count. Tens of microseconds.
ModelCost model_cost(const ModelShape& shape, const ServeShape& serve,
                     const ModelShape* draft = nullptr, std::span<const ModelShape> adapters = {});

// Layers on devices, the output included; as many as the placement says, be there so many or not.
std::uint32_t device_layers(const Placement& placement);

// The charge of all parts. More layers than there are count as all. A draft model goes where the
// model goes: wholly onto the devices, in the model's proportions, as soon as the model has a layer
// there. A share whose device is beyond kMaxDomains is a mistake of the caller.
Charge charge_of(const ModelCost& cost, const Placement& placement);

}  // namespace berth::core
