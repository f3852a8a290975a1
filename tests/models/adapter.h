#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "common/result.h"
#include "tests/models/gguf_writer.h"
#include "tests/models/random_model.h"

namespace berth::test_models {

// A LoRA adapter: each of a model's attn_q, attn_v and attn_output matrices W becomes
// W + scale * alpha / rank * B * A, with random A and B.
struct AdapterOptions {
  std::uint32_t rank = 4;
  float alpha = 8.0F;
  // The length of what is added to a row at scale 1; the model's own rows have length 1.
  float strength = 1.0F;
  std::uint64_t seed = 1;
};

enum class AdapterFault : std::uint8_t {
  kWrongArchitecture,  // not the model's
  kWrongShape,         // rows of another length than the model's
  kUnknownTensor,      // for a layer that the model does not have
  kMissingHalf,        // an A without its B
  kWrongKind,          // adapter.type is not lora
};

struct AdapterFaultInfo {
  AdapterFault fault;
  std::string_view name;  // "wrong-shape"
};
inline void PrintTo(const AdapterFaultInfo& info, std::ostream* out) {
  *out << info.name;
}

constexpr std::size_t kAdapterFaults = 5;
const std::array<AdapterFaultInfo, kAdapterFaults>& all_adapter_faults();
std::optional<AdapterFault> adapter_fault_from_name(std::string_view name);

// An adapter for the model with those options; with a fault it can be read and not be used. Errors:
// kInvalidArgument, where the architecture has not the usual attention in each layer.
Result<GgufWriter> make_adapter(const ModelOptions& model, const AdapterOptions& options = {},
                                std::optional<AdapterFault> fault = std::nullopt);

}  // namespace berth::test_models
