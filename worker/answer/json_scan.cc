#include "worker/answer/json_scan.h"

#include <algorithm>

#include "common/text.h"

namespace berth::worker {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// 0: no escape of one letter.
char unescaped(char c) {
  switch (c) {
    case '"':
    case '\\':
    case '/':
      return c;
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return 0;
  }
}

// 16: not a digit.
std::uint32_t hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint32_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint32_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<std::uint32_t>(c - 'A' + 10);
  return 16;
}

// Of a number, true, false or null.
bool is_word_byte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' ||
         c == '-' || c == '.';
}

}  // namespace

void JsonStringDecoder::drop_high(std::string& out) {
  if (high_ != 0) out.append(kReplacement);
  high_ = 0;
}

void JsonStringDecoder::append_unit(std::string& out) {
  const bool is_low = unit_ >= 0xDC00 && unit_ <= 0xDFFF;
  if (high_ != 0 && is_low) {
    append_utf8(out, 0x10000 + ((high_ - 0xD800) << 10U) + (unit_ - 0xDC00));
    high_ = 0;
    return;
  }
  drop_high(out);
  if (is_low) {
    out.append(kReplacement);
  } else if (unit_ >= 0xD800 && unit_ <= 0xDBFF) {
    high_ = unit_;
  } else {
    append_utf8(out, unit_);
  }
}

ScanStatus JsonStringDecoder::push_plain(char c, std::string& out) {
  if (c == '\\') {
    state_ = State::kEscape;
    escape_ = c;
    return ScanStatus::kReading;
  }
  drop_high(out);
  if (c == '"') return ScanStatus::kDone;
  if (!lenient_ && static_cast<unsigned char>(c) < 0x20) return ScanStatus::kFault;
  out.push_back(c);
  return ScanStatus::kReading;
}

ScanStatus JsonStringDecoder::push_escape(char c, std::string& out) {
  escape_.push_back(c);
  if (c == 'u') {
    state_ = State::kHex;
    unit_ = 0;
    return ScanStatus::kReading;
  }
  state_ = State::kPlain;
  drop_high(out);
  if (const char plain = unescaped(c); plain != 0) {
    out.push_back(plain);
  } else if (lenient_) {
    out.append(escape_);
  } else {
    return ScanStatus::kFault;
  }
  return ScanStatus::kReading;
}

ScanStatus JsonStringDecoder::push_hex(char c, std::string& out) {
  const auto digit = hex_digit(c);
  if (digit > 15) {
    if (!lenient_) return ScanStatus::kFault;
    state_ = State::kPlain;
    drop_high(out);
    out.append(escape_);
    return push_plain(c, out);
  }
  escape_.push_back(c);
  unit_ = unit_ * 16 + digit;
  if (escape_.size() == 6) {
    state_ = State::kPlain;
    append_unit(out);
  }
  return ScanStatus::kReading;
}

ScanStatus JsonStringDecoder::push(char c, std::string& out) {
  switch (state_) {
    case State::kPlain:
      return push_plain(c, out);
    case State::kEscape:
      return push_escape(c, out);
    case State::kHex:
      return push_hex(c, out);
  }
  return ScanStatus::kFault;
}

std::size_t JsonStringDecoder::push(std::string_view text, std::string& out, ScanStatus& status) {
  std::size_t i = 0;
  status = ScanStatus::kReading;
  while (i < text.size() && status == ScanStatus::kReading) {
    if (state_ == State::kPlain && high_ == 0) {
      const auto end = std::min(text.find_first_of("\"\\", i), text.size());
      out.append(text.substr(i, end - i));
      i = end;
      if (i == text.size()) break;
    }
    status = push(text[i], out);
    ++i;
  }
  return i;
}

bool ValueScanner::push_outside(char c) {
  const bool is_open = c == '{' || c == '[';
  const bool is_close = c == '}' || c == ']';
  if (kind_ == Kind::kWord && !is_word_byte(c)) {
    // What may follow a value ends the word; it is for the caller to judge.
    status_ = is_close || c == ',' || is_json_space(c) ? ScanStatus::kDone : ScanStatus::kFault;
    return false;
  }
  if (is_word_byte(c)) {
    if (kind_ == Kind::kNone) kind_ = Kind::kWord;
    return true;
  }
  if (c == '"') {
    if (kind_ == Kind::kNone) kind_ = Kind::kString;
    in_string_ = true;
    return true;
  }
  if (is_open) {
    kind_ = Kind::kNested;
    ++depth_;
    return true;
  }
  if (kind_ == Kind::kNested && is_close) {
    if (--depth_ == 0) status_ = ScanStatus::kDone;
    return true;
  }
  if (kind_ == Kind::kNested && (c == ',' || c == ':' || is_json_space(c))) return true;
  status_ = ScanStatus::kFault;
  return false;
}

std::size_t ValueScanner::push(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!in_string_) {
      if (!push_outside(c)) return i;
      if (status_ != ScanStatus::kReading) return i + 1;
    } else if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
      if (kind_ == Kind::kString) {
        status_ = ScanStatus::kDone;
        return i + 1;
      }
    }
  }
  return text.size();
}

std::size_t ArgumentsReader::push_string(std::string_view text, CallWriter& writer,
                                         AnswerDelta& out) {
  piece_.clear();
  const auto taken = string_.push(text, piece_, status_);
  is_empty_ = is_empty_ && piece_.empty();
  writer.add(piece_, out);
  // A string without text is what some models write for "no arguments".
  if (status_ == ScanStatus::kDone && is_empty_) writer.add("{}", out);
  return taken;
}

std::size_t ArgumentsReader::push(std::string_view text, CallWriter& writer, AnswerDelta& out) {
  if (text.empty() || status_ != ScanStatus::kReading) return 0;
  if (kind_ == Kind::kNone) {
    if (text.front() == '"') {
      kind_ = Kind::kString;
      return 1 + push_string(text.substr(1), writer, out);
    }
    if (text.front() != '{') {
      status_ = ScanStatus::kFault;
      return 0;
    }
    kind_ = Kind::kObject;
  }
  if (kind_ == Kind::kString) return push_string(text, writer, out);
  const auto taken = object_.push(text);
  status_ = object_.status();
  writer.add(text.substr(0, taken), out);
  return taken;
}

}  // namespace berth::worker
