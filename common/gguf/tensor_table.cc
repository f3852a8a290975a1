#include "common/gguf/tensor_table.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "common/gguf/types.h"

namespace berth::gguf {
namespace {

// ggml keeps names in 64 bytes with an end mark, and has up to four dimensions.
constexpr std::uint64_t kMaxNameBytes = 63;
constexpr std::uint32_t kMaxDimensions = 4;
constexpr std::uint64_t kMaxElements = std::numeric_limits<std::int64_t>::max();
// A size that no file of this decade has: beyond it a number is wrong, and not a file cut short.
constexpr std::uint64_t kMaxDataBytes = 1ULL << 46U;

// Length and bytes of the name, number of dimensions, one dimension, type, offset.
constexpr std::uint64_t kLeastEntryBytes = 8 + 4 + 8 + 4 + 8;

Status read_shape(const Input& input, Tensor& tensor) {
  ByteReader& reader = input.reader;
  const auto named = [&] { return "tensor " + quoted(tensor.name); };
  std::uint32_t dimensions = 0;
  if (!reader.read(dimensions)) return input.cut(named());
  if (dimensions > kMaxDimensions) {
    return input.bad(named() + " has " + std::to_string(dimensions) + " dimensions; at most " +
                     std::to_string(kMaxDimensions) + " are allowed");
  }
  tensor.elements = 1;
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    std::uint64_t& length = tensor.shape.at(i);
    if (!reader.read(length)) return input.cut(named());
    if (length == 0) return input.bad(named() + " has an empty dimension");
    if (length > kMaxElements / tensor.elements) {
      return input.bad(named() +
                       " has an impossible size: its dimensions multiply to more than "
                       "2^63 elements");
    }
    tensor.elements *= length;
  }
  return {};
}

Status read_type(const Input& input, Tensor& tensor) {
  const auto named = [&] { return "tensor " + quoted(tensor.name); };
  if (!input.reader.read(tensor.type)) return input.cut(named());
  const std::uint64_t block = type_block_elements(tensor.type);
  if (block == 0) {
    return input.bad(named() + " has type " + std::to_string(tensor.type) +
                     ", which is unknown or no longer supported");
  }
  if (tensor.shape[0] % block != 0) {
    return input.bad(named() + " has rows of " + std::to_string(tensor.shape[0]) +
                     " elements, which is no multiple of the " + std::to_string(block) +
                     " that a block of " + std::string(type_name(tensor.type)) + " has");
  }
  tensor.bytes = type_bytes(tensor.type, tensor.elements);
  if (tensor.bytes == 0 || tensor.bytes > kMaxDataBytes) {
    return input.bad(named() + " has an impossible size: " + std::to_string(tensor.elements) +
                     " elements of " + std::string(type_name(tensor.type)));
  }
  return {};
}

Result<Tensor> read_tensor(const Input& input, std::uint64_t index, std::uint64_t count) {
  ByteReader& reader = input.reader;
  const auto numbered = [&] {
    return "tensor " + std::to_string(index + 1) + " of " + std::to_string(count);
  };
  Tensor tensor;
  std::uint64_t length = 0;
  if (!reader.read(length)) return input.cut(numbered());
  if (length > kMaxNameBytes) {
    return input.bad("the name of " + numbered() + " has " + std::to_string(length) +
                     " bytes; at most " + std::to_string(kMaxNameBytes) + " are allowed");
  }
  if (!reader.read_text(tensor.name, length)) return input.cut(numbered());
  if (auto shape = read_shape(input, tensor); !shape) return fail(std::move(shape).error());
  if (auto type = read_type(input, tensor); !type) return fail(std::move(type).error());
  if (!reader.read(tensor.offset)) return input.cut("tensor " + quoted(tensor.name));
  if (tensor.offset > kMaxDataBytes) {
    return input.bad("tensor " + quoted(tensor.name) +
                     " has an impossible offset: " + std::to_string(tensor.offset));
  }
  return tensor;
}

Status check_names(const Input& input, const std::vector<Tensor>& tensors) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const Tensor& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return {};
  return input.bad("tensor " + quoted(*twice) + " is there twice");
}

}  // namespace

Result<std::vector<Tensor>> read_tensors(const Input& input, std::uint64_t count) {
  if (count > kMaxTensors) {
    return input.bad("its header claims " + std::to_string(count) + " tensors; at most " +
                     std::to_string(kMaxTensors) + " are allowed");
  }
  if (count * kLeastEntryBytes > input.reader.remaining()) {
    return input.bad("truncated header: it claims " + std::to_string(count) +
                     " tensors, but the file has only " + std::to_string(input.reader.size()) +
                     " bytes");
  }
  std::vector<Tensor> tensors;
  tensors.reserve(static_cast<std::size_t>(count));
  for (std::uint64_t i = 0; i < count; ++i) {
    auto tensor = read_tensor(input, i, count);
    if (!tensor) return fail(std::move(tensor).error());
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

Status check_tensors(const Input& input, const std::vector<Tensor>& tensors,
                     std::uint64_t alignment, std::uint64_t data_offset) {
  if (auto names = check_names(input, tensors); !names) return names;
  std::vector<const Tensor*> by_offset;
  by_offset.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    if (tensor.offset % alignment != 0) {
      return input.bad("tensor " + quoted(tensor.name) + " is not aligned: its offset " +
                       std::to_string(tensor.offset) + " is no multiple of " +
                       std::to_string(alignment));
    }
    by_offset.push_back(&tensor);
  }
  std::stable_sort(by_offset.begin(), by_offset.end(),
                   [](const Tensor* a, const Tensor* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < by_offset.size(); ++i) {
    const Tensor& before = *by_offset[i - 1];
    if (before.offset + before.bytes > by_offset[i]->offset) {
      return input.bad("tensors " + quoted(before.name) + " and " + quoted(by_offset[i]->name) +
                       " overlap");
    }
  }
  if (by_offset.empty()) return {};
  const std::uint64_t needed = data_offset + by_offset.back()->offset + by_offset.back()->bytes;
  if (needed > input.reader.size()) {
    return input.bad("truncated: needs " + std::to_string(needed) + " bytes, has " +
                     std::to_string(input.reader.size()));
  }
  return {};
}

}  // namespace berth::gguf
