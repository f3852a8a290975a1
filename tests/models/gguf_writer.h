#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.h"
#include "tests/models/tensor_types.h"

namespace berth::test_models {

// Writes GGUF files, right ones and, on demand, wrong ones: it checks nothing that a broken file
// may want to get wrong. Keys and tensors are written in the order in which they were added. One
// thread.
class GgufWriter {
 public:
  // Fills one row of a tensor, `row` counting over all dimensions but the first.
  using FillRow = std::function<void(std::vector<float>& values, std::uint64_t row)>;

  void set_u8(std::string_view key, std::uint8_t value) { set_number(key, 0, value); }
  void set_u16(std::string_view key, std::uint16_t value) { set_number(key, 2, value); }
  void set_u32(std::string_view key, std::uint32_t value) { set_number(key, 4, value); }
  void set_i32(std::string_view key, std::int32_t value) { set_number(key, 5, value); }
  void set_f32(std::string_view key, float value) { set_number(key, 6, value); }
  void set_u64(std::string_view key, std::uint64_t value) { set_number(key, 10, value); }
  void set_i64(std::string_view key, std::int64_t value) { set_number(key, 11, value); }
  void set_f64(std::string_view key, double value) { set_number(key, 12, value); }
  void set_bool(std::string_view key, bool value);
  void set_text(std::string_view key, std::string_view value);
  void set_texts(std::string_view key, const std::vector<std::string>& values);
  void set_i32s(std::string_view key, const std::vector<std::int32_t>& values);
  void set_f32s(std::string_view key, const std::vector<float>& values);
  // A key with a value of any type number and any bytes.
  void set_raw(std::string_view key, std::uint32_t type, std::string_view bytes);
  void remove_key(std::string_view key);

  // `shape` has the row length first, 1 to 4 dimensions. Row lengths are whole blocks of the type.
  void add_tensor(std::string name, TensorType type, std::vector<std::uint64_t> shape,
                  FillRow fill);
  void remove_tensor(std::string_view name);
  [[nodiscard]] bool has_tensor(std::string_view name) const;
  // In order.
  [[nodiscard]] std::vector<std::string> tensor_names() const;
  [[nodiscard]] std::size_t tensor_count() const { return tensors_.size(); }

  void set_version(std::uint32_t version) { version_ = version; }
  // Of the data; written as general.alignment where it is not 32.
  void set_alignment(std::uint32_t alignment);

  // Header and padding, that is everything before the tensors' data.
  [[nodiscard]] std::string header() const;
  // The whole file, for small ones.
  [[nodiscard]] std::string bytes() const;
  // Errors: kInternal, where the file cannot be written.
  [[nodiscard]] Status write(const std::string& path) const;
  // As several files with the keys in the first; `paths` in order, at most as many as tensors.
  [[nodiscard]] Status write_shards(const std::vector<std::string>& paths) const;

 private:
  struct Key {
    std::string name;
    std::string encoded;  // type and value
  };
  struct Entry {
    std::string name;
    TensorType type;
    std::vector<std::uint64_t> shape;
    FillRow fill;
  };
  using Sink = std::function<bool(std::string_view)>;

  template <typename Number>
  void set_number(std::string_view key, std::uint32_t type, Number value) {
    std::string raw(sizeof(Number), '\0');
    std::char_traits<char>::copy(raw.data(), reinterpret_cast<const char*>(&value), sizeof(Number));
    set_raw(key, type, raw);
  }
  [[nodiscard]] static std::uint64_t stored_bytes(const Entry& entry);
  void put_data(const Sink& sink) const;

  std::vector<Key> keys_;
  std::vector<Entry> tensors_;
  std::uint32_t version_ = 3;
  std::uint32_t alignment_ = 32;
};

// Writes a file at once. Errors: kInternal.
Status write_file(const std::string& path, std::string_view bytes);

}  // namespace berth::test_models
