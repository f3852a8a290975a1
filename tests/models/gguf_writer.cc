#include "tests/models/gguf_writer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <fstream>

namespace berth::test_models {
namespace {

constexpr std::size_t kBlock = 32;  // values in a block of Q8_0

template <typename Number>
void put(std::string& out, Number value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(Number));
}

void put_text(std::string& out, std::string_view text) {
  put<std::uint64_t>(out, text.size());
  out += text;
}

std::uint64_t padded(std::uint64_t size, std::uint64_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

// Copies the values of `converted` to the end of `out`, as they lie in memory.
template <typename Stored>
void append_all(std::string& out, const std::vector<Stored>& converted) {
  out.append(reinterpret_cast<const char*>(converted.data()), converted.size() * sizeof(Stored));
}

void encode_half(std::string& out, const std::vector<float>& values) {
  std::vector<std::uint16_t> halves(values.size());
  std::transform(values.begin(), values.end(), halves.begin(), half_from_float);
  append_all(out, halves);
}

void encode_q8_0(std::string& out, const std::vector<float>& values) {
  for (std::size_t start = 0; start + kBlock <= values.size(); start += kBlock) {
    float largest = 0;
    for (std::size_t i = 0; i < kBlock; ++i) {
      largest = std::max(largest, std::fabs(values[start + i]));
    }
    const float scale = largest / 127.0F;
    const float inverse = scale > 0 ? 1.0F / scale : 0.0F;
    put(out, half_from_float(scale));
    std::array<std::int8_t, kBlock> quotients{};
    for (std::size_t i = 0; i < kBlock; ++i) {
      // Rounds to nearest: the sum is positive.
      const int shifted = static_cast<int>(values[start + i] * inverse + 128.5F);
      quotients[i] = static_cast<std::int8_t>(std::clamp(shifted - 128, -127, 127));
    }
    out.append(reinterpret_cast<const char*>(quotients.data()), kBlock);
  }
}

tl::unexpected<Error> cannot_write(const std::string& path) {
  return fail(Reason::kInternal, path + ": cannot be written");
}

}  // namespace

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

void encode_row(std::string& out, TensorType type, const std::vector<float>& values) {
  switch (type) {
    case TensorType::kF32:
      append_all(out, values);
      return;
    case TensorType::kF16:
      encode_half(out, values);
      return;
    case TensorType::kQ8_0:
      encode_q8_0(out, values);
      return;
  }
}

Status write_file(const std::string& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) return cannot_write(path);
  return {};
}

void GgufWriter::set_bool(std::string_view key, bool value) {
  set_raw(key, 7, std::string(1, value ? '\1' : '\0'));
}

void GgufWriter::set_text(std::string_view key, std::string_view value) {
  std::string raw;
  put_text(raw, value);
  set_raw(key, 8, raw);
}

void GgufWriter::set_texts(std::string_view key, const std::vector<std::string>& values) {
  std::string raw;
  put<std::uint32_t>(raw, 8);
  put<std::uint64_t>(raw, values.size());
  for (const std::string& value : values) put_text(raw, value);
  set_raw(key, 9, raw);
}

void GgufWriter::set_i32s(std::string_view key, const std::vector<std::int32_t>& values) {
  std::string raw;
  put<std::uint32_t>(raw, 5);
  put<std::uint64_t>(raw, values.size());
  for (const std::int32_t value : values) put(raw, value);
  set_raw(key, 9, raw);
}

void GgufWriter::set_f32s(std::string_view key, const std::vector<float>& values) {
  std::string raw;
  put<std::uint32_t>(raw, 6);
  put<std::uint64_t>(raw, values.size());
  for (const float value : values) put(raw, value);
  set_raw(key, 9, raw);
}

void GgufWriter::set_raw(std::string_view key, std::uint32_t type, std::string_view bytes) {
  std::string encoded;
  put(encoded, type);
  encoded += bytes;
  for (Key& known : keys_) {
    if (known.name != key) continue;
    known.encoded = std::move(encoded);
    return;
  }
  keys_.push_back(Key{std::string(key), std::move(encoded)});
}

void GgufWriter::remove_key(std::string_view key) {
  std::erase_if(keys_, [&](const Key& known) { return known.name == key; });
}

void GgufWriter::add_tensor(std::string name, TensorType type, std::vector<std::uint64_t> shape,
                            FillRow fill) {
  tensors_.push_back(Entry{std::move(name), type, std::move(shape), std::move(fill)});
}

void GgufWriter::remove_tensor(std::string_view name) {
  std::erase_if(tensors_, [&](const Entry& entry) { return entry.name == name; });
}

void GgufWriter::set_alignment(std::uint32_t alignment) {
  alignment_ = alignment;
  set_u32("general.alignment", alignment);
}

std::uint64_t GgufWriter::stored_bytes(const Entry& entry) {
  std::uint64_t elements = 1;
  for (const std::uint64_t length : entry.shape) elements *= length;
  switch (entry.type) {
    case TensorType::kF32:
      return elements * 4;
    case TensorType::kF16:
      return elements * 2;
    case TensorType::kQ8_0:
      return elements / kBlock * (kBlock + 2);
  }
  return 0;
}

std::string GgufWriter::header() const {
  std::string out = "GGUF";
  put(out, version_);
  put<std::uint64_t>(out, tensors_.size());
  put<std::uint64_t>(out, keys_.size());
  for (const Key& key : keys_) {
    put_text(out, key.name);
    out += key.encoded;
  }
  std::uint64_t offset = 0;
  for (const Entry& entry : tensors_) {
    put_text(out, entry.name);
    put(out, static_cast<std::uint32_t>(entry.shape.size()));
    for (const std::uint64_t length : entry.shape) put(out, length);
    put(out, static_cast<std::uint32_t>(entry.type));
    put(out, offset);
    offset += padded(stored_bytes(entry), alignment_);
  }
  out.resize(padded(out.size(), alignment_));
  return out;
}

void GgufWriter::put_data(const Sink& sink) const {
  constexpr std::size_t kPieceBytes = 1U << 20U;
  std::string piece;
  for (const Entry& entry : tensors_) {
    std::uint64_t rows = 1;
    for (std::size_t i = 1; i < entry.shape.size(); ++i) rows *= entry.shape[i];
    std::vector<float> values(entry.shape.at(0));
    for (std::uint64_t row = 0; row < rows; ++row) {
      entry.fill(values, row);
      encode_row(piece, entry.type, values);
      if (piece.size() < kPieceBytes) continue;
      if (!sink(piece)) return;
      piece.clear();
    }
    const std::uint64_t size = stored_bytes(entry);
    piece.append(padded(size, alignment_) - size, '\0');
  }
  sink(piece);
}

std::string GgufWriter::bytes() const {
  std::string out = header();
  put_data([&](std::string_view piece) {
    out += piece;
    return true;
  });
  return out;
}

Status GgufWriter::write(const std::string& path) const {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  const auto sink = [&](std::string_view piece) {
    return static_cast<bool>(out.write(piece.data(), static_cast<std::streamsize>(piece.size())));
  };
  sink(header());
  put_data(sink);
  out.close();
  if (!out) return cannot_write(path);
  return {};
}

Status GgufWriter::write_shards(const std::vector<std::string>& paths) const {
  if (paths.empty() || paths.size() > tensors_.size()) {
    return fail(Reason::kInvalidArgument, "cannot make " + std::to_string(paths.size()) +
                                              " shards of " + std::to_string(tensors_.size()) +
                                              " tensors");
  }
  for (std::size_t i = 0; i < paths.size(); ++i) {
    GgufWriter shard;
    shard.version_ = version_;
    shard.alignment_ = alignment_;
    if (i == 0) shard.keys_ = keys_;
    shard.set_u16("split.no", static_cast<std::uint16_t>(i));
    shard.set_u16("split.count", static_cast<std::uint16_t>(paths.size()));
    shard.set_i32("split.tensors.count", static_cast<std::int32_t>(tensors_.size()));
    if (alignment_ != 32) shard.set_u32("general.alignment", alignment_);
    const std::size_t begin = tensors_.size() * i / paths.size();
    const std::size_t end = tensors_.size() * (i + 1) / paths.size();
    for (std::size_t at = begin; at < end; ++at) shard.tensors_.push_back(tensors_[at]);
    if (auto written = shard.write(paths[i]); !written) return written;
  }
  return {};
}

}  // namespace berth::test_models
