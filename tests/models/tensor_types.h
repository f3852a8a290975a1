#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::test_models {

// The ggml types that the writer can store.
enum class TensorType : std::uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,   // NOLINT(readability-identifier-naming)
  kQ8_0 = 8,   // NOLINT(readability-identifier-naming)
  kQ4_K = 12,  // NOLINT(readability-identifier-naming)
  kQ5_K = 13,  // NOLINT(readability-identifier-naming)
  kQ6_K = 14,  // NOLINT(readability-identifier-naming)
};

// "q4_K"; any case is taken.
std::string_view type_name(TensorType type);
std::optional<TensorType> type_from_name(std::string_view name);

// A row is stored in blocks of so many values, each of so many bytes.
std::uint32_t block_values(TensorType type);
std::uint32_t block_bytes(TensorType type);
// What general.file_type says of a file whose matrices are mostly of that type (llama_ftype).
std::uint32_t file_type(TensorType type);

// Appends `values`, whole blocks of them, as they are stored in `type`. The quantised formats are
// those of ggml-common.h; the encoders take each block's scale from its extreme values, which is
// right and not the best: llama-quantize searches for scales with a smaller error.
void encode_row(std::string& out, TensorType type, const std::vector<float>& values);

// IEEE half precision, to nearest even.
std::uint16_t half_from_float(float value);
// Of finite halves.
float float_from_half(std::uint16_t half);

}  // namespace berth::test_models
