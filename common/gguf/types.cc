#include "common/gguf/types.h"

#include <algorithm>
#include <array>
#include <limits>

#include "common/gguf/gguf.h"

namespace berth::gguf {
namespace {

struct TypeInfo {
  std::uint32_t type;
  std::string_view name;
  std::uint64_t block_elements;
  std::uint64_t block_bytes;
};

// ggml_type as of ggml 0.27, in ascending order. Types that ggml no longer reads are left out.
constexpr std::array kTypes = {
    TypeInfo{0, "F32", 1, 4},         TypeInfo{1, "F16", 1, 2},
    TypeInfo{2, "Q4_0", 32, 18},      TypeInfo{3, "Q4_1", 32, 20},
    TypeInfo{6, "Q5_0", 32, 22},      TypeInfo{7, "Q5_1", 32, 24},
    TypeInfo{8, "Q8_0", 32, 34},      TypeInfo{9, "Q8_1", 32, 36},
    TypeInfo{10, "Q2_K", 256, 84},    TypeInfo{11, "Q3_K", 256, 110},
    TypeInfo{12, "Q4_K", 256, 144},   TypeInfo{13, "Q5_K", 256, 176},
    TypeInfo{14, "Q6_K", 256, 210},   TypeInfo{15, "Q8_K", 256, 292},
    TypeInfo{16, "IQ2_XXS", 256, 66}, TypeInfo{17, "IQ2_XS", 256, 74},
    TypeInfo{18, "IQ3_XXS", 256, 98}, TypeInfo{19, "IQ1_S", 256, 50},
    TypeInfo{20, "IQ4_NL", 32, 18},   TypeInfo{21, "IQ3_S", 256, 110},
    TypeInfo{22, "IQ2_S", 256, 82},   TypeInfo{23, "IQ4_XS", 256, 136},
    TypeInfo{24, "I8", 1, 1},         TypeInfo{25, "I16", 1, 2},
    TypeInfo{26, "I32", 1, 4},        TypeInfo{27, "I64", 1, 8},
    TypeInfo{28, "F64", 1, 8},        TypeInfo{29, "IQ1_M", 256, 56},
    TypeInfo{30, "BF16", 1, 2},       TypeInfo{34, "TQ1_0", 256, 54},
    TypeInfo{35, "TQ2_0", 256, 66},   TypeInfo{39, "MXFP4", 32, 17},
    TypeInfo{40, "NVFP4", 64, 36},    TypeInfo{41, "Q1_0", 128, 18},
    TypeInfo{42, "Q2_0", 64, 18},
};

const TypeInfo* find_type(std::uint32_t type) {
  const auto* at = std::lower_bound(
      kTypes.begin(), kTypes.end(), type,
      [](const TypeInfo& info, std::uint32_t wanted) { return info.type < wanted; });
  return at != kTypes.end() && at->type == type ? at : nullptr;
}

}  // namespace

std::string_view type_name(std::uint32_t type) {
  const TypeInfo* info = find_type(type);
  return info == nullptr ? std::string_view() : info->name;
}

std::uint64_t type_block_elements(std::uint32_t type) {
  const TypeInfo* info = find_type(type);
  return info == nullptr ? 0 : info->block_elements;
}

std::uint64_t type_bytes(std::uint32_t type, std::uint64_t elements) {
  const TypeInfo* info = find_type(type);
  if (info == nullptr || elements % info->block_elements != 0) return 0;
  const std::uint64_t blocks = elements / info->block_elements;
  if (blocks > std::numeric_limits<std::uint64_t>::max() / info->block_bytes) return 0;
  return blocks * info->block_bytes;
}

}  // namespace berth::gguf
