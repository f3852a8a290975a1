#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace berth::catalog {

// Bounds of a configuration text. Beyond them reading it is an error.
inline constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxListElements = 4096;
inline constexpr std::size_t kMaxDotsPerLine = 256;

struct TomlEntry;

// One value of a TOML document, with the line where its key stands (an element of a list: where it
// stands itself). A value, independent of the TOML library, whose heavy header stays in one file.
struct TomlNode {
  enum class Type : std::uint8_t { kTable, kList, kText, kInteger, kNumber, kSwitch, kTime };

  Type type = Type::kTable;
  std::uint32_t line = 0;
  std::string text;  // kText; kTime as it would be written
  std::int64_t integer = 0;
  double number = 0;
  bool truth = false;
  // kList: at most kMaxListElements + 1 of them, so that a reader can see that there are too many.
  std::vector<TomlNode> items;
  std::vector<TomlEntry> entries;  // kTable

  [[nodiscard]] const TomlNode* find(std::string_view key) const;
  // For messages: `the integer 5`, `the string "abc"`, `a list`.
  [[nodiscard]] std::string describe() const;
};

struct TomlEntry {
  std::string key;
  TomlNode value;
};

struct TomlError {
  std::uint32_t line = 0;
  std::string message;
};

// Parses a whole document. Errors: not UTF-8, control characters, too large, not TOML. The reader
// stops at the first. Any thread; touches nothing else.
tl::expected<TomlNode, TomlError> parse_toml(std::string_view text);

// `text` as a TOML string in quotes.
std::string toml_quote(std::string_view text);

// `name` as a part of a dotted key: bare where that is allowed.
std::string toml_key(std::string_view name);

}  // namespace berth::catalog
