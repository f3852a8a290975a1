#include "worker/grammar/gbnf_reader.h"

#include <charconv>

#include "common/text.h"
#include "worker/grammar/code_points.h"
#include "worker/grammar/gbnf_model.h"

namespace berth::worker {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || is_digit(c);
}

}  // namespace

bool GbnfReader::starts_name() const {
  return is_name(peek());
}

bool GbnfReader::starts_number() const {
  return is_digit(peek());
}

tl::unexpected<Error> GbnfReader::error(const std::string& what) const {
  return gbnf_error(line_, what);
}

tl::unexpected<Error> GbnfReader::expected(const std::string& what) const {
  if (done()) return error("expected " + what + ", but the grammar ends here");
  const auto next = rest(20);
  return error("expected " + what + " at " + gbnf_quoted(next.substr(0, next.find('\n'))));
}

void GbnfReader::space(bool newlines) {
  while (!done()) {
    const char c = peek();
    if (c == '#') {
      while (!done() && peek() != '\n' && peek() != '\r') ++position_;
    } else if (c == ' ' || c == '\t') {
      ++position_;
    } else if (newlines && (c == '\n' || c == '\r')) {
      if (c == '\n') ++line_;
      ++position_;
    } else {
      return;
    }
  }
}

Result<std::string_view> GbnfReader::name() {
  const auto begin = position_;
  while (is_name(peek())) ++position_;
  const auto found = text_.substr(begin, position_ - begin);
  if (found.size() <= GbnfBounds::kNameBytes) return found;
  return error("the name of rule " + gbnf_quoted(found) + "… has " + std::to_string(found.size()) +
               " bytes; at most " + std::to_string(GbnfBounds::kNameBytes) + " are allowed");
}

Result<std::uint64_t> GbnfReader::number() {
  if (!is_digit(peek())) return expected("a number");
  const auto begin = position_;
  while (is_digit(peek())) ++position_;
  std::uint64_t value = 0;
  const auto [end, failure] =
      std::from_chars(text_.data() + begin, text_.data() + position_, value);
  if (failure != std::errc()) {
    return error("number " + gbnf_quoted(text_.substr(begin, position_ - begin)) + " is too large");
  }
  return value;
}

// The text is well-formed UTF-8.
Result<std::uint32_t> GbnfReader::character() {
  if (peek() == '\\') return escape();
  auto rest = text_.substr(position_);
  const auto value = take_code_point(rest);
  position_ = text_.size() - rest.size();
  return value;
}

Result<std::uint32_t> GbnfReader::escape() {
  const char kind = peek(1);
  std::size_t digits = 0;
  switch (kind) {
    case 't':
    case 'r':
    case 'n':
    case '\\':
    case '"':
    case '[':
    case ']':
    case '-':
      position_ += 2;
      return kind == 't'   ? '\t'
             : kind == 'r' ? '\r'
             : kind == 'n' ? '\n'
                           : static_cast<unsigned char>(kind);
    case 'x':
      digits = 2;
      break;
    case 'u':
      digits = 4;
      break;
    case 'U':
      digits = 8;
      break;
    default:
      return expected(
          "an escape that GBNF has (\\n \\r \\t \\\\ \\\" \\[ \\] \\- \\xHH \\uHHHH \\UHHHHHHHH)");
  }
  const auto hex = text_.substr(position_ + 2, digits);
  std::uint32_t value = 0;
  const auto [end, failure] = std::from_chars(hex.data(), hex.data() + hex.size(), value, 16);
  if (failure != std::errc() || hex.size() != digits || end != hex.data() + digits) {
    return expected(std::to_string(digits) + " hexadecimal digits after `\\" + kind + "`");
  }
  if (value > kLastCodePoint) return error("an escape is above \\U0010FFFF");
  position_ += 2 + digits;
  return value;
}

}  // namespace berth::worker
