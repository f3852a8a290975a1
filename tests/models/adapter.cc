#include "tests/models/adapter.h"

#include <cmath>
#include <utility>
#include <vector>

#include "tests/models/architectures.h"
#include "tests/models/random.h"

namespace berth::test_models {
namespace {

constexpr std::array<AdapterFaultInfo, kAdapterFaults> kInfos = {{
    {AdapterFault::kWrongArchitecture, "wrong-architecture"},
    {AdapterFault::kWrongShape, "wrong-shape"},
    {AdapterFault::kUnknownTensor, "unknown-tensor"},
    {AdapterFault::kMissingHalf, "missing-half"},
    {AdapterFault::kWrongKind, "wrong-kind"},
}};

GgufWriter::FillRow noise(std::uint64_t seed, float most) {
  return [=](std::vector<float>& values, std::uint64_t row) {
    Random random(Random(seed + row).next());
    for (float& value : values) value = random.uniform() * most;
  };
}

void add_halves(GgufWriter& adapter, const AdapterOptions& o, const std::string& name,
                std::uint32_t columns, std::uint32_t rows) {
  const std::uint64_t seed = o.seed * 0x9E3779B97F4A7C15ULL + hash_text(name + ".lora");
  const auto unit = [](std::uint32_t length) {
    return std::sqrt(3.0F / static_cast<float>(length));
  };
  const float scale = o.alpha / static_cast<float>(o.rank);
  adapter.add_tensor(name + ".lora_a", TensorType::kF32, {columns, o.rank},
                     noise(seed, unit(columns)));
  adapter.add_tensor(name + ".lora_b", TensorType::kF32, {o.rank, rows},
                     noise(~seed, unit(o.rank) * o.strength / scale));
}

}  // namespace

const std::array<AdapterFaultInfo, kAdapterFaults>& all_adapter_faults() {
  return kInfos;
}

std::optional<AdapterFault> adapter_fault_from_name(std::string_view name) {
  for (const AdapterFaultInfo& info : kInfos) {
    if (info.name == name) return info.fault;
  }
  return std::nullopt;
}

Result<GgufWriter> make_adapter(const ModelOptions& model, const AdapterOptions& options,
                                std::optional<AdapterFault> fault) {
  const auto bad = [](const char* what) { return fail(Reason::kInvalidArgument, what); };
  if (options.rank == 0 || !std::isfinite(options.alpha) || options.alpha <= 0 ||
      !std::isfinite(options.strength)) {
    return bad("an adapter's rank and alpha must be more than 0, and its strength a number");
  }
  const auto base = make_model(model);
  if (!base) return fail(base.error());
  const Architecture* const kind = find_architecture(model.architecture);
  for (std::uint32_t layer = 0; layer < model.layers; ++layer) {
    if (kind == nullptr || !kind->generates ||
        !base->has_tensor(block_name(layer) + "attn_q.weight")) {
      return bad("adapters are made only for architectures with attention in each layer");
    }
  }

  GgufWriter adapter;
  adapter.set_text("general.type", "adapter");
  adapter.set_text("general.architecture", fault == AdapterFault::kWrongArchitecture
                                               ? "kestrel"
                                               : std::string(kind->general));
  adapter.set_text("general.name", model.name + " adapter");
  adapter.set_text("adapter.type", fault == AdapterFault::kWrongKind ? "control_vector" : "lora");
  adapter.set_f32("adapter.lora.alpha", options.alpha);
  const std::uint32_t width =
      fault == AdapterFault::kWrongShape ? model.embedding + 32 : model.embedding;
  const std::uint32_t kv_width = model.embedding / model.heads * model.kv_heads;
  const std::uint32_t first = fault == AdapterFault::kUnknownTensor ? model.layers : 0;
  for (std::uint32_t layer = first; layer < first + model.layers; ++layer) {
    const std::string block = block_name(layer);
    add_halves(adapter, options, block + "attn_q.weight", width, model.embedding);
    add_halves(adapter, options, block + "attn_v.weight", width, kv_width);
    add_halves(adapter, options, block + "attn_output.weight", width, model.embedding);
  }
  if (fault == AdapterFault::kMissingHalf) adapter.remove_tensor("blk.0.attn_q.weight.lora_b");
  return adapter;
}

}  // namespace berth::test_models
