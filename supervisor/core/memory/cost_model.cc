#include "supervisor/core/memory/cost_model.h"

#include <algorithm>
#include <array>

#include "common/gguf/gguf.h"
#include "supervisor/core/memory/saturating.h"
#include "supervisor/core/memory/working_memory.h"

namespace berth::core {
namespace {

constexpr std::uint64_t kMiB = 1ULL << 20;
// Measured, see docs/memory.md. Of a worker with an empty model: program, libraries, gRPC; of each
// of its threads; what libllama and the worker keep of one token of the vocabulary, and of a merge.
constexpr std::uint64_t kProcessBytes = 22 * kMiB;
constexpr std::uint64_t kThreadBytes = kMiB / 4;
constexpr std::uint64_t kTokenBytes = 150;
constexpr std::uint64_t kMergeBytes = 150;
constexpr std::uint32_t kErrorPercent = 10;
constexpr std::uint32_t kGuessErrorPercent = 30;
constexpr std::uint64_t kErrorBytes = 64 * kMiB;
constexpr std::uint64_t kPipelinedBatches = 4;

// Bytes of `numbers` in that type, in whole blocks.
std::uint64_t row_bytes(std::uint32_t type, std::uint64_t numbers) {
  if (numbers == 0) return 0;
  constexpr std::uint64_t kBlock = 32;  // of every type that a cache can have
  const std::uint64_t up = (numbers + kBlock - 1) / kBlock * kBlock;
  const std::uint64_t bytes = gguf::type_bytes(type, up);
  return bytes != 0 ? bytes : saturating_multiply(numbers, 4);
}

LayerCost layer_cost(const LayerShape& layer, const ContextShape& context,
                     std::uint32_t widest_values) {
  LayerCost cost;
  cost.weights = layer.weights;
  // Without flash attention values are kept the other way round, and every layer has as many as
  // the widest.
  const std::uint32_t values =
      context.flash_attention || layer.values == 0 ? layer.values : widest_values;
  const std::uint64_t cell =
      saturating_add(row_bytes(context.kv_type, layer.keys), row_bytes(context.kv_type, values));
  const std::uint64_t cells = layer.windowed ? context.window_cells : context.cells;
  cost.kv = saturating_add(saturating_multiply(cell, cells),
                           saturating_multiply(layer.state_bytes, context.sequences));
  if (!layer.windowed || context.window_cells == context.cells) cost.kv_per_cell = cell;
  return cost;
}

PartCost part_cost(const ModelShape& shape, const ServeShape& serve, const ContextShape& context) {
  PartCost part;
  part.host_weights = shape.input_weights;
  std::uint32_t widest = 0;
  for (const LayerShape& layer : shape.layers) widest = std::max(widest, layer.values);
  part.layers.reserve(shape.layers.size() + 1);
  for (const LayerShape& layer : shape.layers) {
    part.layers.push_back(layer_cost(layer, context, widest));
  }
  part.layers.push_back(LayerCost{.weights = shape.output_weights});
  if (!shape.tied_repacks || !serve.repacks) part.shared_output = shape.tied_output;
  const WorkingMemory working = working_memory(shape, context);
  part.host_working = working.host;
  part.input_working = working.input;
  part.device_working = working.device;
  part.pipelined_working = saturating_multiply(kPipelinedBatches - 1, working.inputs);
  part.borrowed_working = shape.largest_matrix;
  return part;
}

std::uint64_t vocabulary_bytes(const ModelShape& shape) {
  return saturating_add(saturating_multiply(shape.vocabulary, kTokenBytes),
                        saturating_multiply(shape.merges, kMergeBytes));
}

void add_adapter(const ModelShape& adapter, PartCost& part) {
  part.host_weights = saturating_add(part.host_weights, adapter.input_weights);
  for (std::size_t i = 0; i < adapter.layers.size(); ++i) {
    // Of layers that the model does not have libllama refuses it; counted all the same.
    LayerCost& layer = part.layers[std::min(i, part.layers.size() - 1)];
    layer.weights = saturating_add(layer.weights, adapter.layers[i].weights);
  }
  part.layers.back().weights = saturating_add(part.layers.back().weights, adapter.output_weights);
}

// How many layers of a part each share has, in the order of `placement`; as many at most as there
// are.
std::vector<std::uint32_t> shared_out(const Placement& placement, std::uint32_t layers,
                                      bool in_proportion) {
  std::uint64_t wanted = device_layers(placement);
  std::vector<std::uint32_t> counts;
  std::uint64_t before = 0;
  std::uint32_t given = 0;
  for (const Placement::Share& share : placement.shares) {
    before += share.layers;
    // Rounded up, as libllama does (the first layer whose share is not below a device's).
    const std::uint64_t upto = in_proportion ? (layers * before + wanted - 1) / wanted : before;
    const auto bounded = static_cast<std::uint32_t>(std::min<std::uint64_t>(upto, layers));
    counts.push_back(bounded - given);
    given = bounded;
  }
  return counts;
}

struct Sum {
  Charge charge;
  std::array<bool, kMaxDomains> used{};  // by layers
};

void add_part(const PartCost& part, const Placement& placement, bool is_draft, Sum& sum) {
  const auto layers = static_cast<std::uint32_t>(part.layers.size());
  const bool on_devices = device_layers(placement) > 0;
  const auto counts =
      on_devices ? shared_out(placement, layers, is_draft) : std::vector<std::uint32_t>();
  std::uint32_t on_device = 0;
  for (const std::uint32_t count : counts) on_device += count;

  Charge& charge = sum.charge;
  charge.weights.bytes += DomainBytes::in(kHostDomain, part.host_weights);
  const auto put = [&](DomainIndex domain, std::uint32_t first, std::uint32_t count) {
    for (std::uint32_t i = first; i < first + count; ++i) {
      charge.weights.bytes += DomainBytes::in(domain, part.layers[i].weights);
      charge.kv.bytes += DomainBytes::in(domain, part.layers[i].kv);
    }
  };
  std::uint32_t next = layers - on_device;
  put(kHostDomain, 0, next);
  const bool output_in_host = on_device == 0;
  bool borrows = on_device < layers;
  const std::uint64_t pipelined =
      placement.shares.size() > 1 && on_device == layers ? part.pipelined_working : 0;
  if (output_in_host) {
    charge.weights.bytes -= DomainBytes::in(kHostDomain, part.shared_output);
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const DomainIndex device = placement.shares[i].device;
    put(device, next, counts[i]);
    next += counts[i];
    charge.working.bytes += DomainBytes::in(device, part.device_working);
    charge.working.bytes += DomainBytes::in(device, pipelined);
    if (borrows) charge.working.bytes += DomainBytes::in(device, part.borrowed_working);
    borrows = false;
    sum.used.at(device) = true;
  }
  const bool host_computes = on_device < layers;
  charge.working.bytes +=
      DomainBytes::in(kHostDomain, host_computes ? part.host_working : part.input_working);
  charge.working.bytes += DomainBytes::in(kHostDomain, pipelined);
}

}  // namespace

std::optional<std::uint32_t> kv_type_from_name(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::uint32_t>, 9> kTypes = {{{"f32", 0},
                                                                                 {"f16", 1},
                                                                                 {"bf16", 30},
                                                                                 {"q8_0", 8},
                                                                                 {"q5_1", 7},
                                                                                 {"q5_0", 6},
                                                                                 {"q4_1", 3},
                                                                                 {"q4_0", 2},
                                                                                 {"iq4_nl", 20}}};
  for (const auto& [known, type] : kTypes) {
    if (known == name) return type;
  }
  return std::nullopt;
}

std::uint32_t device_layers(const Placement& placement) {
  std::uint64_t sum = 0;
  for (const Placement::Share& share : placement.shares) sum += share.layers;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(sum, 0xFFFF'FFFFU));
}

ModelCost model_cost(const ModelShape& shape, const ServeShape& serve, const ModelShape* draft,
                     std::span<const ModelShape> adapters) {
  ModelCost cost;
  const ContextShape context = context_shape(shape, serve, false, draft != nullptr);
  cost.cells = context.cells;
  cost.parts.push_back(part_cost(shape, serve, context));
  for (const ModelShape& adapter : adapters) add_adapter(adapter, cost.parts.front());
  bool guessed = shape.guessed;
  if (draft != nullptr) {
    ServeShape as_draft = serve;
    as_draft.window = context.cells;
    cost.parts.push_back(part_cost(*draft, serve, context_shape(*draft, as_draft, true, false)));
    cost.host_overhead = vocabulary_bytes(*draft);
    guessed = guessed || draft->guessed;
  }
  cost.host_overhead = saturating_add(cost.host_overhead, vocabulary_bytes(shape));
  cost.host_overhead =
      saturating_add(cost.host_overhead, kProcessBytes + serve.threads * kThreadBytes);
  cost.device_overhead = serve.device_context;
  cost.error_percent = guessed ? kGuessErrorPercent : kErrorPercent;
  cost.error_bytes = kErrorBytes;
  return cost;
}

Charge charge_of(const ModelCost& cost, const Placement& placement) {
  Sum sum;
  for (std::size_t i = 0; i < cost.parts.size(); ++i) {
    add_part(cost.parts[i], placement, i > 0, sum);
  }
  Charge& charge = sum.charge;
  sum.used[kHostDomain] = true;
  for (std::size_t i = 0; i < kMaxDomains; ++i) {
    if (!sum.used.at(i)) continue;
    const auto domain = static_cast<DomainIndex>(i);
    const std::uint64_t overhead =
        domain == kHostDomain ? cost.host_overhead : cost.device_overhead;
    charge.overhead.bytes += DomainBytes::in(domain, overhead);
    const std::uint64_t share = charge.total()[domain] / 100;
    charge.error += DomainBytes::in(
        domain, std::max(cost.error_bytes, saturating_multiply(share, cost.error_percent)));
  }
  return charge;
}

}  // namespace berth::core
