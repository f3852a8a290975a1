#include "supervisor/catalog/toml_document.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <sstream>
#include <utility>

#include "common/text.h"
#include "supervisor/catalog/toml_ascii.h"

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_MAX_NESTED_VALUES 16
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ENABLE_WINDOWS_COMPAT 0
// Version 3.3 asserts what a wrong text can make false ("[" at the end of a line) and then handles
// it as an error; with NDEBUG it would let the compiler assume it. Neither may happen to a user's
// file.
#define TOML_ASSERT(expr) static_assert(true)
#pragma push_macro("NDEBUG")
#undef NDEBUG
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace berth::catalog {
namespace {

// Far deeper than any setting lies; what is below is left empty, and refused where its key is.
constexpr std::size_t kMaxDepth = 16;

std::uint32_t line_at(std::string_view text, std::size_t offset) {
  return 1 + static_cast<std::uint32_t>(std::count(
                 text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
}

// The library frees nested tables recursively and does not bound the parts of a dotted key
// (`a.a.a…`), so a hostile text could exhaust the stack. Dots in strings and comments count too:
// this is a bound that nothing can slip past, not a parser.
std::optional<TomlError> check_depth(std::string_view text) {
  std::uint32_t line = 1;
  std::size_t dots = 0;
  for (const char c : text) {
    if (c == '\n') {
      ++line;
      dots = 0;
    } else if (c == '.' && ++dots > kMaxDotsPerLine) {
      return TomlError{line, "more than " + std::to_string(kMaxDotsPerLine) +
                                 " dots in one line; break the list into several lines"};
    }
  }
  return std::nullopt;
}

TomlNode convert(const toml::node& node, std::uint32_t line, std::size_t depth);

void convert_table(const toml::table& table, TomlNode& out, std::size_t depth) {
  out.type = TomlNode::Type::kTable;
  if (depth > kMaxDepth) return;
  out.entries.reserve(table.size());
  for (const auto& [key, value] : table) {
    out.entries.push_back({std::string(key.str()),
                           convert(value, std::uint32_t{key.source().begin.line}, depth + 1)});
  }
  std::stable_sort(
      out.entries.begin(), out.entries.end(),
      [](const TomlEntry& a, const TomlEntry& b) { return a.value.line < b.value.line; });
}

template <typename T>
std::string written(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

TomlNode convert(const toml::node& node, std::uint32_t line, std::size_t depth) {
  TomlNode out;
  out.line = line;
  switch (node.type()) {
    case toml::node_type::table:
      convert_table(*node.as_table(), out, depth);
      break;
    case toml::node_type::array: {
      out.type = TomlNode::Type::kList;
      const toml::array& array = *node.as_array();
      const std::size_t count = std::min(array.size(), kMaxListElements + 1);
      out.items.reserve(count);
      for (std::size_t i = 0; i < count; ++i) {
        out.items.push_back(
            convert(array[i], std::uint32_t{array[i].source().begin.line}, depth + 1));
      }
      break;
    }
    case toml::node_type::string:
      out.type = TomlNode::Type::kText;
      out.text = node.as_string()->get();
      break;
    case toml::node_type::integer:
      out.type = TomlNode::Type::kInteger;
      out.integer = node.as_integer()->get();
      break;
    case toml::node_type::floating_point:
      out.type = TomlNode::Type::kNumber;
      out.number = node.as_floating_point()->get();
      break;
    case toml::node_type::boolean:
      out.type = TomlNode::Type::kSwitch;
      out.truth = node.as_boolean()->get();
      break;
    case toml::node_type::date:
      out.type = TomlNode::Type::kTime;
      out.text = written(node.as_date()->get());
      break;
    case toml::node_type::time:
      out.type = TomlNode::Type::kTime;
      out.text = written(node.as_time()->get());
      break;
    case toml::node_type::date_time:
      out.type = TomlNode::Type::kTime;
      out.text = written(node.as_date_time()->get());
      break;
    case toml::node_type::none:
      break;
  }
  return out;
}

std::string foreign_character(const std::string& character) {
  const std::string shown = printable_line(character, character.size());
  return (shown.empty() ? std::string("an invisible character") : "the character '" + shown + "'") +
         " stands outside of quotes, where TOML takes only ASCII; strings stand in straight "
         "quotes, "
         "and blanks are plain blanks";
}

}  // namespace

const TomlNode* TomlNode::find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const TomlEntry& entry) { return entry.key == key; });
  return found == entries.end() ? nullptr : &found->value;
}

std::string TomlNode::describe() const {
  switch (type) {
    case Type::kTable:
      return "a table";
    case Type::kList:
      return "a list";
    case Type::kText:
      return "the string " + toml_quote(printable_line(text, 80)) + (text.size() > 80 ? "…" : "");
    case Type::kInteger:
      return "the integer " + std::to_string(integer);
    case Type::kNumber: {
      std::array<char, 32> digits{};
      const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
      return "the number " + std::string(digits.data(), end);
    }
    case Type::kSwitch:
      return truth ? "the boolean true" : "the boolean false";
    case Type::kTime:
      return "the date or time " + text;
  }
  return {};
}

tl::expected<TomlNode, TomlError> parse_toml(std::string_view text) {
  const auto error = [](std::uint32_t line, std::string message) {
    return tl::unexpected<TomlError>(TomlError{line, std::move(message)});
  };
  if (text.size() > kMaxConfigBytes) {
    return error(0, "the file has " + std::to_string(text.size()) + " bytes, more than the " +
                        std::to_string(kMaxConfigBytes) + " that a configuration may have");
  }
  if (const auto bad = first_invalid_utf8(text)) {
    return error(line_at(text, *bad),
                 "not valid UTF-8 at byte " + std::to_string(*bad) + "; save the file as UTF-8");
  }
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return error(line_at(text, nul),
                 "a NUL byte at byte " + std::to_string(nul) + "; a configuration is a text file");
  }
  if (auto deep = check_depth(text)) return error(deep->line, std::move(deep->message));

  const AsciiToml ascii = ascii_toml(text);
  const toml::parse_result parsed = toml::parse(std::string_view(ascii.text), std::string_view{});
  if (!parsed) {
    const std::uint32_t line{parsed.error().source().begin.line};
    if (line == ascii.foreign_line) return error(line, foreign_character(ascii.foreign));
    return error(line, printable_line(parsed.error().description(), 400));
  }
  TomlNode root;
  convert_table(parsed.table(), root, 0);
  return root;
}

std::string toml_quote(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
  return out;
}

std::string toml_key(std::string_view name) {
  const bool bare = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
  return bare ? std::string(name) : toml_quote(name);
}

}  // namespace berth::catalog
