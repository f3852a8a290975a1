#include "tests/models/tensor_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "common/gguf/gguf.h"
#include "tests/models/random.h"

namespace berth::test_models {
namespace {

constexpr TensorType kAll[] = {TensorType::kF32,  TensorType::kF16,  TensorType::kQ4_0,
                               TensorType::kQ8_0, TensorType::kQ4_K, TensorType::kQ5_K,
                               TensorType::kQ6_K};

std::vector<float> random_values(std::size_t count, float centre) {
  Random random(7);
  std::vector<float> values(count);
  for (float& value : values) value = random.uniform() + centre;
  return values;
}

// Reads stored blocks, as ggml does (ggml-quants.c, dequantize_row_*), one value at a time.
class Stored {
 public:
  explicit Stored(const std::string& bytes) : bytes_(bytes) {}

  [[nodiscard]] std::uint32_t byte(std::size_t at) const {
    return static_cast<std::uint8_t>(bytes_.at(at));
  }
  [[nodiscard]] std::int32_t signed_byte(std::size_t at) const {
    return static_cast<std::int8_t>(bytes_.at(at));
  }
  [[nodiscard]] float half(std::size_t at) const {
    return float_from_half(static_cast<std::uint16_t>(byte(at) | (byte(at + 1) << 8U)));
  }
  [[nodiscard]] std::uint32_t nibble(std::size_t at, bool high) const {
    return high ? byte(at) >> 4U : byte(at) & 15U;
  }

 private:
  const std::string& bytes_;
};

float value_q4_0(const Stored& s, std::size_t i) {
  const std::size_t block = i / 32 * 18;
  const std::size_t at = i % 32;
  const auto bits = static_cast<int>(s.nibble(block + 2 + at % 16, at >= 16));
  return s.half(block) * static_cast<float>(bits - 8);
}

float value_q8_0(const Stored& s, std::size_t i) {
  const std::size_t block = i / 32 * 34;
  return s.half(block) * static_cast<float>(s.signed_byte(block + 2 + i % 32));
}

// Scale and minimum of a part, of the 12 bytes from `at`.
std::pair<std::uint32_t, std::uint32_t> part_of(const Stored& s, std::size_t at, std::size_t part) {
  if (part < 4) return {s.byte(at + part) & 63U, s.byte(at + part + 4) & 63U};
  const std::uint32_t low = s.byte(at + part + 4);
  return {(low & 15U) | ((s.byte(at + part - 4) >> 6U) << 4U),
          (low >> 4U) | ((s.byte(at + part) >> 6U) << 4U)};
}

float value_q4_k(const Stored& s, std::size_t i) {
  const std::size_t block = i / 256 * 144;
  const std::size_t part = i % 256 / 32;
  const auto [scale, minimum] = part_of(s, block + 4, part);
  const std::uint32_t bits = s.nibble(block + 16 + part / 2 * 32 + i % 32, part % 2 == 1);
  return s.half(block) * static_cast<float>(scale * bits) -
         s.half(block + 2) * static_cast<float>(minimum);
}

float value_q5_k(const Stored& s, std::size_t i) {
  const std::size_t block = i / 256 * 176;
  const std::size_t part = i % 256 / 32;
  const auto [scale, minimum] = part_of(s, block + 4, part);
  const std::uint32_t fifth = (s.byte(block + 16 + i % 32) >> part) & 1U;
  const std::uint32_t bits =
      s.nibble(block + 48 + part / 2 * 32 + i % 32, part % 2 == 1) | (fifth << 4U);
  return s.half(block) * static_cast<float>(scale * bits) -
         s.half(block + 2) * static_cast<float>(minimum);
}

float value_q6_k(const Stored& s, std::size_t i) {
  const std::size_t block = i / 256 * 210;
  const std::size_t half = i % 256 / 128;
  const std::size_t quarter = i % 128 / 32;
  const std::uint32_t low = s.nibble(block + half * 64 + quarter % 2 * 32 + i % 32, quarter >= 2);
  const std::uint32_t high = (s.byte(block + 128 + half * 32 + i % 32) >> (2 * quarter)) & 3U;
  const int scale = s.signed_byte(block + 192 + i % 256 / 16);
  const int bits = static_cast<int>(low | (high << 4U)) - 32;
  return s.half(block + 208) * static_cast<float>(scale * bits);
}

float value_at(TensorType type, const Stored& s, std::size_t i) {
  switch (type) {
    case TensorType::kF32:
    case TensorType::kF16:
      break;
    case TensorType::kQ4_0:
      return value_q4_0(s, i);
    case TensorType::kQ8_0:
      return value_q8_0(s, i);
    case TensorType::kQ4_K:
      return value_q4_k(s, i);
    case TensorType::kQ5_K:
      return value_q5_k(s, i);
    case TensorType::kQ6_K:
      return value_q6_k(s, i);
  }
  return s.half(2 * i);
}

// Of values of length 1 about `centre`.
float largest_error(TensorType type, float centre) {
  const auto values = random_values(1024, centre);
  std::string bytes;
  encode_row(bytes, type, values);
  const Stored stored(bytes);
  float largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    largest = std::max(largest, std::fabs(value_at(type, stored, i) - values[i]));
  }
  return largest;
}

TEST(TensorTypes, SizesAreThoseOfTheReader) {
  for (const TensorType type : kAll) {
    EXPECT_EQ(gguf::type_bytes(static_cast<std::uint32_t>(type), 512),
              512U / block_values(type) * block_bytes(type));
    std::string bytes;
    encode_row(bytes, type, random_values(512, 0));
    EXPECT_EQ(bytes.size(), gguf::type_bytes(static_cast<std::uint32_t>(type), 512));
  }
}

TEST(TensorTypes, NamesAreThoseOfTheReaderInAnyCase) {
  for (const TensorType type : kAll) {
    const auto shown = gguf::type_name(static_cast<std::uint32_t>(type));
    EXPECT_EQ(type_from_name(shown), type) << shown;
    EXPECT_EQ(type_from_name(type_name(type)), type);
  }
  EXPECT_FALSE(type_from_name("q4").has_value());
  EXPECT_FALSE(type_from_name("").has_value());
}

TEST(TensorTypes, StoredValuesAreNearTheGivenOnes) {
  // Half a step of each format, and a little for the steps' own rounding.
  EXPECT_LE(largest_error(TensorType::kF16, 0), 0.0005F);
  EXPECT_LE(largest_error(TensorType::kQ8_0, 0), 0.5F / 127 + 0.001F);
  EXPECT_LE(largest_error(TensorType::kQ4_0, 0), 1.0F / 8 + 0.001F);  // one end is cut by a step
  EXPECT_LE(largest_error(TensorType::kQ4_K, 0), 1.0F / 15 + 0.04F);
  EXPECT_LE(largest_error(TensorType::kQ5_K, 0), 1.0F / 31 + 0.04F);
  EXPECT_LE(largest_error(TensorType::kQ6_K, 0), 1.0F / 32 + 0.01F);
}

TEST(TensorTypes, ValuesOfOneSignAreStored) {
  for (const TensorType type : kAll) {
    if (type == TensorType::kF32) continue;
    for (const float centre : {-3.0F, 3.0F}) {
      EXPECT_LE(largest_error(type, centre), 0.52F) << type_name(type) << centre;
    }
  }
}

TEST(TensorTypes, ZerosStayZeros) {
  for (const TensorType type : kAll) {
    if (type == TensorType::kF32) continue;
    std::string bytes;
    encode_row(bytes, type, std::vector<float>(256));
    const Stored stored(bytes);
    for (std::size_t i = 0; i < 256; ++i) EXPECT_EQ(value_at(type, stored, i), 0.0F);
  }
}

TEST(TensorTypes, HalvesGoBothWays) {
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    if ((half & 0x7C00U) == 0x7C00U) continue;  // infinite, or no number
    const auto bits = static_cast<std::uint16_t>(half);
    EXPECT_EQ(half_from_float(float_from_half(bits)), bits);
  }
}

}  // namespace
}  // namespace berth::test_models
