#include "tests/models/gguf_writer.h"

#include <algorithm>
#include <cstddef>
#include <fstream>

namespace berth::test_models {
namespace {

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

tl::unexpected<Error> cannot_write(const std::string& path) {
  return fail(Reason::kInternal, path + ": cannot be written");
}

}  // namespace

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

bool GgufWriter::has_tensor(std::string_view name) const {
  return std::any_of(tensors_.begin(), tensors_.end(),
                     [&](const Entry& entry) { return entry.name == name; });
}

std::vector<std::string> GgufWriter::tensor_names() const {
  std::vector<std::string> names;
  names.reserve(tensors_.size());
  for (const Entry& entry : tensors_) names.push_back(entry.name);
  return names;
}

void GgufWriter::set_alignment(std::uint32_t alignment) {
  alignment_ = alignment;
  set_u32("general.alignment", alignment);
}

std::uint64_t GgufWriter::stored_bytes(const Entry& entry) {
  std::uint64_t elements = 1;
  for (const std::uint64_t length : entry.shape) elements *= length;
  return elements / block_values(entry.type) * block_bytes(entry.type);
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
