#include "supervisor/catalog/toml_ascii.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>

namespace berth::catalog {
namespace {

bool is_ascii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}

// Bytes of the character that starts with this byte, of valid UTF-8.
std::size_t length_of(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

std::uint32_t code_of(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  std::uint32_t code = first & (0xffU >> (character.size() + 1));
  for (const char c : character.substr(1)) {
    code = (code << 6U) | (static_cast<unsigned char>(c) & 0x3fU);
  }
  return code;
}

// Reads a text once, keeping track of what it is in. Where the text is no TOML what comes after the
// first fault may be taken for something else, which does not matter: nobody reads on there.
class Rewriter {
 public:
  explicit Rewriter(std::string_view text) : text_(text) { out_.text.reserve(text.size()); }

  AsciiToml run() {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (text_.starts_with(kByteOrderMark)) take(kByteOrderMark.size());
    while (at_ < text_.size()) step();
    return std::move(out_);
  }

 private:
  enum class Where : std::uint8_t {
    kOutside,
    kComment,
    kBasic,
    kLiteral,
    kLongBasic,
    kLongLiteral
  };

  void step() {
    const char c = text_[at_];
    if (c == '\n') {
      ++line_;
      if (where_ != Where::kLongBasic && where_ != Where::kLongLiteral) where_ = Where::kOutside;
      take(1);
    } else if (!is_ascii(c)) {
      character();
    } else {
      switch (where_) {
        case Where::kOutside:
          outside(c);
          break;
        case Where::kComment:
          take(1);
          break;
        case Where::kBasic:
        case Where::kLongBasic:
          in_string(c, '"');
          break;
        case Where::kLiteral:
        case Where::kLongLiteral:
          in_string(c, '\'');
          break;
      }
    }
  }

  void outside(char c) {
    if (c == '"' || c == '\'') {
      const bool is_long = quotes(c) >= 3;
      where_ = c == '"' ? (is_long ? Where::kLongBasic : Where::kBasic)
                        : (is_long ? Where::kLongLiteral : Where::kLiteral);
      take(is_long ? 3 : 1);
      return;
    }
    if (c == '#') where_ = Where::kComment;
    take(1);
  }

  void in_string(char c, char quote) {
    const bool is_long = where_ == Where::kLongBasic || where_ == Where::kLongLiteral;
    if (c == '\\' && quote == '"') {
      take(1);
      escaped();
    } else if (c == quote && !is_long) {
      where_ = Where::kOutside;
      take(1);
    } else if (c == quote) {
      // Up to two more quotes belong to the string.
      const std::size_t count = std::min<std::size_t>(quotes(quote), 5);
      if (count >= 3) where_ = Where::kOutside;
      take(count);
    } else {
      take(1);
    }
  }

  // What follows a backslash. No character beyond ASCII may, and neither may '?'.
  void escaped() {
    if (at_ >= text_.size() || text_[at_] == '\n') return;
    if (is_ascii(text_[at_])) {
      take(1);
    } else {
      out_.text += '?';
      at_ += length_of(text_[at_]);
    }
  }

  void character() {
    const std::string_view whole = text_.substr(at_, length_of(text_[at_]));
    switch (where_) {
      case Where::kOutside:
        if (out_.foreign_line == 0) {
          out_.foreign_line = line_;
          out_.foreign = whole;
        }
        out_.text += '?';
        break;
      case Where::kComment:
        break;
      case Where::kLiteral:
      case Where::kLongLiteral:
        out_.text += whole;
        break;
      case Where::kBasic:
      case Where::kLongBasic: {
        std::array<char, 16> escape{};
        const int length =
            std::snprintf(escape.data(), escape.size(), "\\U%08x", unsigned{code_of(whole)});
        out_.text.append(escape.data(), static_cast<std::size_t>(length));
        break;
      }
    }
    at_ += whole.size();
  }

  // How many of these quotes stand here.
  [[nodiscard]] std::size_t quotes(char quote) const {
    const std::size_t end = text_.find_first_not_of(quote, at_);
    return (end == std::string_view::npos ? text_.size() : end) - at_;
  }

  void take(std::size_t count) {
    out_.text += text_.substr(at_, count);
    at_ += count;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  Where where_ = Where::kOutside;
  AsciiToml out_;
};

}  // namespace

AsciiToml ascii_toml(std::string_view text) {
  return Rewriter(text).run();
}

}  // namespace berth::catalog
