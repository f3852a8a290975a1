#include "common/gguf/metadata.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "common/units.h"

namespace berth::gguf {
namespace {

// The numbers of gguf_type.
enum class ValueType : std::uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};
constexpr std::uint32_t kValueTypes = 13;

// Stored bytes of one value of each type; 0: not fixed.
constexpr std::array<std::uint64_t, kValueTypes> kValueBytes = {1, 1, 2, 2, 4, 4, 4,
                                                                1, 0, 0, 8, 8, 8};

// What one key costs at least: its length, its type and one byte of value.
constexpr std::uint64_t kLeastKeyBytes = 8 + 4 + 1;
// Roughly what a key costs in memory besides its texts.
constexpr std::uint64_t kNodeBytes = 128;

template <typename Stored, typename Wide>
std::optional<Value> read_number(ByteReader& reader) {
  Stored stored{};
  if (!reader.read(stored)) return std::nullopt;
  return Value(static_cast<Wide>(stored));
}

// A value of fixed size; nothing where the file ends.
std::optional<Value> read_fixed(ByteReader& reader, ValueType type) {
  switch (type) {
    case ValueType::kUint8:
      return read_number<std::uint8_t, std::uint64_t>(reader);
    case ValueType::kInt8:
      return read_number<std::int8_t, std::int64_t>(reader);
    case ValueType::kUint16:
      return read_number<std::uint16_t, std::uint64_t>(reader);
    case ValueType::kInt16:
      return read_number<std::int16_t, std::int64_t>(reader);
    case ValueType::kUint32:
      return read_number<std::uint32_t, std::uint64_t>(reader);
    case ValueType::kInt32:
      return read_number<std::int32_t, std::int64_t>(reader);
    case ValueType::kFloat32:
      return read_number<float, double>(reader);
    case ValueType::kBool: {
      std::uint8_t stored = 0;
      if (!reader.read(stored)) return std::nullopt;
      return Value(stored != 0);
    }
    case ValueType::kUint64:
      return read_number<std::uint64_t, std::uint64_t>(reader);
    case ValueType::kInt64:
      return read_number<std::int64_t, std::int64_t>(reader);
    case ValueType::kFloat64:
      return read_number<double, double>(reader);
    case ValueType::kString:
    case ValueType::kArray:
      break;
  }
  return std::nullopt;
}

double as_double(const Value& value) {
  if (const auto* natural = std::get_if<std::uint64_t>(&value)) {
    return static_cast<double>(*natural);
  }
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    return static_cast<double>(*integer);
  }
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? 1.0 : 0.0;
  return 0.0;
}

// Reads the keys of one header; used once.
class MetadataReader {
 public:
  explicit MetadataReader(const Input& input) : input_(input), reader_(input.reader) {}

  Result<Metadata> read(std::uint64_t count) {
    Metadata metadata;
    for (std::uint64_t i = 0; i < count; ++i) {
      auto key = read_key(i, count);
      if (!key) return fail(std::move(key).error());
      auto value = read_value(*key);
      if (!value) return fail(std::move(value).error());
      kept_bytes_ += kNodeBytes + key->size();
      if (kept_bytes_ > kMaxKeptBytes) return too_much();
      const auto [at, inserted] = metadata.try_emplace(std::move(*key), std::move(*value));
      if (!inserted) return input_.bad("key " + quoted(at->first) + " is there twice");
    }
    return metadata;
  }

 private:
  tl::unexpected<Error> too_much() const {
    return input_.bad("its metadata takes more than " + format_bytes(kMaxKeptBytes));
  }

  Result<std::string> read_key(std::uint64_t index, std::uint64_t count) {
    const auto where = [&] {
      return "key " + std::to_string(index + 1) + " of " + std::to_string(count);
    };
    std::uint64_t length = 0;
    if (!reader_.read(length)) return input_.cut(where());
    if (length > kMaxKeyBytes) {
      return input_.bad(where() + " has " + std::to_string(length) + " bytes; a key has at most " +
                        std::to_string(kMaxKeyBytes));
    }
    std::string key;
    if (!reader_.read_text(key, length)) return input_.cut(where());
    return key;
  }

  Result<Value> read_value(const std::string& key) {
    const auto where = [&] { return "the value of " + quoted(key); };
    std::uint32_t type = 0;
    if (!reader_.read(type)) return input_.cut(where());
    if (type >= kValueTypes) {
      return input_.bad(where() + " has type " + std::to_string(type) +
                        ", which GGUF does not know");
    }
    const auto value_type = static_cast<ValueType>(type);
    // ggml aborts its process where this key has another type.
    if (key == "general.alignment" && value_type != ValueType::kUint32) {
      return input_.bad("'general.alignment' must be an unsigned 32 bit number");
    }
    if (value_type == ValueType::kString) return read_string(key);
    if (value_type == ValueType::kArray) return read_array(key);
    auto value = read_fixed(reader_, value_type);
    if (!value) return input_.cut(where());
    return std::move(*value);
  }

  Result<Value> read_string(const std::string& key) {
    std::uint64_t length = 0;
    if (!reader_.read(length)) return input_.cut("the value of " + quoted(key));
    if (length > kMaxStringBytes) return too_long(key, length);
    kept_bytes_ += length;
    if (kept_bytes_ > kMaxKeptBytes) return too_much();
    std::string text;
    if (!reader_.read_text(text, length)) return input_.cut("the value of " + quoted(key));
    return Value(std::move(text));
  }

  tl::unexpected<Error> too_long(const std::string& key, std::uint64_t length) const {
    return input_.bad("a text in the value of " + quoted(key) + " has " + std::to_string(length) +
                      " bytes; at most " + std::to_string(kMaxStringBytes) + " are allowed");
  }

  Result<Value> read_array(const std::string& key) {
    const auto where = [&] { return "the list " + quoted(key); };
    std::uint32_t type = 0;
    Array array;
    if (!reader_.read(type) || !reader_.read(array.size)) return input_.cut(where());
    if (type >= kValueTypes || static_cast<ValueType>(type) == ValueType::kArray) {
      return input_.bad(where() + " has elements of type " + std::to_string(type) +
                        ", which a list cannot have");
    }
    if (array.size > kMaxArrayElements) {
      return input_.bad(where() + " has " + std::to_string(array.size) + " elements; at most " +
                        std::to_string(kMaxArrayElements) + " are allowed");
    }
    if (static_cast<ValueType>(type) == ValueType::kString) return read_strings(key, array);

    const std::uint64_t bytes = array.size * kValueBytes.at(type);
    if (array.size > kKeptArrayElements) {
      if (!reader_.skip(bytes)) return input_.cut(where());
      return Value(std::move(array));
    }
    kept_bytes_ += array.size * sizeof(double);
    for (std::uint64_t i = 0; i < array.size; ++i) {
      const auto element = read_fixed(reader_, static_cast<ValueType>(type));
      if (!element) return input_.cut(where());
      array.numbers.push_back(as_double(*element));
    }
    return Value(std::move(array));
  }

  // Vocabularies are looked through, not kept.
  Result<Value> read_strings(const std::string& key, Array array) {
    for (std::uint64_t i = 0; i < array.size; ++i) {
      std::uint64_t length = 0;
      if (!reader_.read(length)) return input_.cut("the list " + quoted(key));
      if (length > kMaxStringBytes) return too_long(key, length);
      if (!reader_.skip(length)) return input_.cut("the list " + quoted(key));
      array.longest_string_bytes = std::max(array.longest_string_bytes, length);
    }
    return Value(std::move(array));
  }

  const Input& input_;
  ByteReader& reader_;
  std::uint64_t kept_bytes_ = 0;
};

}  // namespace

Result<Metadata> read_metadata(const Input& input, std::uint64_t count) {
  if (count > kMaxKeys) {
    return input.bad("its header claims " + std::to_string(count) + " keys; at most " +
                     std::to_string(kMaxKeys) + " are allowed");
  }
  if (count * kLeastKeyBytes > input.reader.remaining()) {
    return input.bad("truncated header: it claims " + std::to_string(count) +
                     " keys, but the file has only " + std::to_string(input.reader.size()) +
                     " bytes");
  }
  return MetadataReader(input).read(count);
}

}  // namespace berth::gguf
