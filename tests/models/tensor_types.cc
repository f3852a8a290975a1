#include "tests/models/tensor_types.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

namespace berth::test_models {
namespace {

struct TypeInfo {
  TensorType type;
  std::string_view name;
  std::uint32_t block_values;
  std::uint32_t block_bytes;
  std::uint32_t file_type;
};

constexpr std::array<TypeInfo, 7> kTypes = {{
    {TensorType::kF32, "f32", 1, 4, 0},
    {TensorType::kF16, "f16", 1, 2, 1},
    {TensorType::kQ4_0, "q4_0", 32, 18, 2},
    {TensorType::kQ8_0, "q8_0", 32, 34, 7},
    {TensorType::kQ4_K, "q4_K", 256, 144, 14},
    {TensorType::kQ5_K, "q5_K", 256, 176, 16},
    {TensorType::kQ6_K, "q6_K", 256, 210, 18},
}};

constexpr const TypeInfo& info(TensorType type) {
  return *std::find_if(kTypes.begin(), kTypes.end(),
                       [&](const TypeInfo& known) { return known.type == type; });
}

constexpr std::size_t kBlock = 32;  // values in a block of Q4_0 and Q8_0, and in a part of Q4_K
constexpr std::size_t kSuperBlock = 256;

template <typename Number>
void put(std::string& out, Number value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(Number));
}

// Copies the elements of `values` to the end of `out`, as they lie in memory.
template <typename Values>
void put_all(std::string& out, const Values& values) {
  out.append(reinterpret_cast<const char*>(values.data()),
             values.size() * sizeof(typename Values::value_type));
}

float inverse(float value) {
  return value != 0 ? 1.0F / value : 0.0F;
}

// To nearest, for what is not negative: many times faster than std::round without SSE4.
std::uint32_t rounded(float value, std::uint32_t most) {
  return std::min(static_cast<std::uint32_t>(std::max(value, 0.0F) + 0.5F), most);
}

// A scale as a file holds it.
struct Scale {
  explicit Scale(float exact) : half(half_from_float(exact)), value(float_from_half(half)) {}
  std::uint16_t half;
  float value;
};

// The value that is farthest from 0.
float extreme(const float* values, std::size_t count) {
  float found = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (std::fabs(values[i]) > std::fabs(found)) found = values[i];
  }
  return found;
}

void encode_half(std::string& out, const std::vector<float>& values) {
  std::vector<std::uint16_t> halves(values.size());
  std::transform(values.begin(), values.end(), halves.begin(), half_from_float);
  put_all(out, halves);
}

// value = scale * (4 bits - 8); the low nibbles hold the first half of the block.
void encode_q4_0(std::string& out, const float* values) {
  const Scale scale(extreme(values, kBlock) / -8.0F);
  const float factor = inverse(scale.value);
  const auto quotient = [&](std::size_t i) { return rounded(values[i] * factor + 8.0F, 15); };
  put(out, scale.half);
  for (std::size_t i = 0; i < kBlock / 2; ++i) {
    put(out, static_cast<std::uint8_t>(quotient(i) | (quotient(i + kBlock / 2) << 4U)));
  }
}

// value = scale * 8 bits with a sign.
void encode_q8_0(std::string& out, const float* values) {
  const float scale = std::fabs(extreme(values, kBlock)) / 127.0F;
  const float factor = inverse(scale);
  put(out, half_from_float(scale));
  for (std::size_t i = 0; i < kBlock; ++i) {
    const auto shifted = static_cast<int>(rounded(values[i] * factor + 128.0F, 255));
    put(out, static_cast<std::int8_t>(std::max(shifted - 128, -127)));
  }
}

// The eight parts' scales and minima of Q4_K and Q5_K, 6 bits each, in their 12 bytes.
std::array<std::uint8_t, 12> packed_parts(const std::array<std::uint32_t, 8>& scales,
                                          const std::array<std::uint32_t, 8>& minima) {
  std::array<std::uint8_t, 12> packed{};
  for (std::size_t i = 0; i < 4; ++i) {
    const std::uint32_t scale = scales[i + 4];
    const std::uint32_t minimum = minima[i + 4];
    packed[i] = static_cast<std::uint8_t>(scales[i] | ((scale >> 4U) << 6U));
    packed[i + 4] = static_cast<std::uint8_t>(minima[i] | ((minimum >> 4U) << 6U));
    packed[i + 8] = static_cast<std::uint8_t>((scale & 15U) | ((minimum & 15U) << 4U));
  }
  return packed;
}

// Q4_K (bits 4) and Q5_K (bits 5): value = scale * part's scale * bits - minimum * part's minimum.
void encode_scaled_parts(std::string& out, const float* values, std::uint32_t bits) {
  constexpr std::size_t kParts = kSuperBlock / kBlock;
  constexpr std::uint32_t kMostPart = 63;
  const std::uint32_t most = (1U << bits) - 1;
  std::array<float, kParts> steps{};
  std::array<float, kParts> depths{};
  for (std::size_t part = 0; part < kParts; ++part) {
    const float* const begin = values + part * kBlock;
    const auto [low, high] = std::minmax_element(begin, begin + kBlock);
    depths[part] = std::max(-*low, 0.0F);
    steps[part] = (std::max(*high, 0.0F) + depths[part]) / static_cast<float>(most);
  }
  const Scale scale(*std::max_element(steps.begin(), steps.end()) / kMostPart);
  const Scale minimum(*std::max_element(depths.begin(), depths.end()) / kMostPart);
  std::array<std::uint32_t, kParts> scales{};
  std::array<std::uint32_t, kParts> minima{};
  std::array<std::uint32_t, kSuperBlock> quotients{};
  for (std::size_t part = 0; part < kParts; ++part) {
    scales[part] = rounded(steps[part] * inverse(scale.value), kMostPart);
    minima[part] = rounded(depths[part] * inverse(minimum.value), kMostPart);
    const float factor = inverse(scale.value * static_cast<float>(scales[part]));
    const float depth = minimum.value * static_cast<float>(minima[part]);
    for (std::size_t i = part * kBlock; i < (part + 1) * kBlock; ++i) {
      quotients[i] = rounded((values[i] + depth) * factor, most);
    }
  }
  put(out, scale.half);
  put(out, minimum.half);
  put_all(out, packed_parts(scales, minima));
  std::array<std::uint8_t, kBlock> fifth_bits{};
  std::array<std::uint8_t, kSuperBlock / 2> nibbles{};
  for (std::size_t i = 0; i < kSuperBlock; ++i) {
    const std::size_t part = i / kBlock;
    const std::size_t at = i % kBlock;
    // Two parts share 32 bytes: the even one has the low nibbles.
    nibbles[part / 2 * kBlock + at] |=
        static_cast<std::uint8_t>((quotients[i] & 15U) << (part % 2 * 4U));
    fifth_bits[at] |= static_cast<std::uint8_t>((quotients[i] >> 4U) << part);
  }
  if (bits == 5) put_all(out, fifth_bits);
  put_all(out, nibbles);
}

// value = scale * part's scale * (6 bits - 32), parts of 16 values.
void encode_q6_k(std::string& out, const float* values) {
  constexpr std::size_t kPart = 16;
  std::array<float, kSuperBlock / kPart> steps{};
  for (std::size_t part = 0; part < steps.size(); ++part) {
    steps[part] = extreme(values + part * kPart, kPart) / -32.0F;
  }
  const Scale scale(std::fabs(extreme(steps.data(), steps.size())) / 127.0F);
  std::array<std::int8_t, kSuperBlock / kPart> scales{};
  std::array<std::uint32_t, kSuperBlock> quotients{};
  for (std::size_t part = 0; part < steps.size(); ++part) {
    const auto shifted =
        static_cast<int>(rounded(steps[part] * inverse(scale.value) + 128.0F, 255));
    scales[part] = static_cast<std::int8_t>(shifted - 128);
    const float factor = inverse(scale.value * static_cast<float>(scales[part]));
    for (std::size_t i = part * kPart; i < (part + 1) * kPart; ++i) {
      quotients[i] = rounded(values[i] * factor + 32.0F, 63);
    }
  }
  std::array<std::uint8_t, kSuperBlock / 2> low{};
  std::array<std::uint8_t, kSuperBlock / 4> high{};
  for (std::size_t i = 0; i < kSuperBlock; ++i) {
    const std::size_t half = i / 128;
    const std::size_t quarter = i % 128 / kBlock;
    const std::size_t at = i % kBlock;
    low[half * 64 + quarter % 2 * kBlock + at] |=
        static_cast<std::uint8_t>((quotients[i] & 15U) << (quarter / 2 * 4U));
    high[half * kBlock + at] |= static_cast<std::uint8_t>((quotients[i] >> 4U) << (quarter * 2U));
  }
  put_all(out, low);
  put_all(out, high);
  put_all(out, scales);
  put(out, scale.half);
}

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

}  // namespace

std::string_view type_name(TensorType type) {
  return info(type).name;
}

std::optional<TensorType> type_from_name(std::string_view name) {
  for (const TypeInfo& known : kTypes) {
    if (std::equal(name.begin(), name.end(), known.name.begin(), known.name.end(),
                   [](char a, char b) { return lower(a) == lower(b); })) {
      return known.type;
    }
  }
  return std::nullopt;
}

std::uint32_t block_values(TensorType type) {
  return info(type).block_values;
}

std::uint32_t block_bytes(TensorType type) {
  return info(type).block_bytes;
}

std::uint32_t file_type(TensorType type) {
  return info(type).file_type;
}

void encode_row(std::string& out, TensorType type, const std::vector<float>& values) {
  if (type == TensorType::kF32) return put_all(out, values);
  if (type == TensorType::kF16) return encode_half(out, values);
  const std::size_t block = block_values(type);
  for (std::size_t start = 0; start + block <= values.size(); start += block) {
    const float* const begin = values.data() + start;
    switch (type) {
      case TensorType::kF32:
      case TensorType::kF16:
        break;
      case TensorType::kQ4_0:
        encode_q4_0(out, begin);
        break;
      case TensorType::kQ8_0:
        encode_q8_0(out, begin);
        break;
      case TensorType::kQ4_K:
        encode_scaled_parts(out, begin, 4);
        break;
      case TensorType::kQ5_K:
        encode_scaled_parts(out, begin, 5);
        break;
      case TensorType::kQ6_K:
        encode_q6_k(out, begin);
        break;
    }
  }
}

std::uint16_t half_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  std::uint32_t half = 0;
  if (magnitude >= 0x7F800000U) {
    half = magnitude > 0x7F800000U ? 0x7E00U : 0x7C00U;
  } else if (magnitude >= 0x477FF000U) {
    half = 0x7C00U;  // rounds to more than the largest half
  } else if (magnitude >= 0x38800000U) {
    // The rounding may carry into the exponent, which is then right, too.
    const std::uint32_t odd = (magnitude >> 13U) & 1U;
    half = (magnitude - 0x38000000U + 0x0FFFU + odd) >> 13U;
  } else {
    // Subnormal: units of 2^-24.
    half = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(std::fabs(value), 24)));
  }
  return static_cast<std::uint16_t>(sign | half);
}

float float_from_half(std::uint16_t half) {
  const std::uint32_t exponent = (half >> 10U) & 31U;
  const auto fraction = static_cast<float>(half & 0x3FFU);
  // Normal numbers have a leading one that is not stored.
  const float magnitude = exponent == 0
                              ? std::ldexp(fraction, -24)
                              : std::ldexp(fraction + 1024.0F, static_cast<int>(exponent) - 25);
  return (half & 0x8000U) != 0 ? -magnitude : magnitude;
}

}  // namespace berth::test_models
