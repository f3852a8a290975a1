#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "worker/answer/call_writer.h"

// JSON as a model writes it, byte by byte. Boost.JSON's parsers answer "is this valid, and what is
// its value"; asked here are "where does this value end, and what is its raw text so far", at any
// byte of a text that may end at any byte. Their handlers give values, not positions, and stop at
// the first fault, where a client is better served with the model's own faulty text. So these
// scanners count brackets and follow strings, without a stack and without memory of what they read.

namespace berth::worker {

enum class ScanStatus : std::uint8_t { kReading, kDone, kFault };

[[nodiscard]] constexpr bool is_json_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// The value of a JSON string (RFC 8259, section 7), from the byte after its opening quote on. A
// surrogate without its partner becomes U+FFFD.
class JsonStringDecoder {
 public:
  // `lenient`: line breaks within the string and unknown escapes stand for themselves; otherwise
  // they are a fault.
  explicit JsonStringDecoder(bool lenient = false) : lenient_(lenient) {}

  ScanStatus push(char c, std::string& out);
  // The same for many bytes at once; returns how many belong to the string, its closing quote
  // included. Only for lenient ones, which have no fault.
  std::size_t push(std::string_view text, std::string& out, ScanStatus& status);

 private:
  enum class State : std::uint8_t { kPlain, kEscape, kHex };

  ScanStatus push_plain(char c, std::string& out);
  ScanStatus push_escape(char c, std::string& out);
  ScanStatus push_hex(char c, std::string& out);
  void append_unit(std::string& out);
  void drop_high(std::string& out);

  bool lenient_;
  State state_ = State::kPlain;
  std::string escape_;      // the escape so far, as it was written
  std::uint32_t unit_ = 0;  // of UTF-16
  std::uint32_t high_ = 0;  // a high surrogate that waits for its low one; 0: none
};

// Finds the end of one JSON value. Brackets are counted, not paired, so that no depth costs memory;
// what stands between them is not checked, but for bytes that no JSON has outside its strings.
class ValueScanner {
 public:
  // Returns how many bytes belong to the value; at a fault, how many precede it. The byte that
  // ends a number or a word is not part of it.
  std::size_t push(std::string_view text);
  [[nodiscard]] ScanStatus status() const { return status_; }

 private:
  enum class Kind : std::uint8_t { kNone, kString, kWord, kNested };

  // Returns whether the byte belongs to the value.
  bool push_outside(char c);

  ScanStatus status_ = ScanStatus::kReading;
  Kind kind_ = Kind::kNone;
  bool in_string_ = false;
  bool escaped_ = false;
  std::uint64_t depth_ = 0;
};

// Passes a call's arguments on while they are read: an object as its raw text, a string as its
// value (some models write the object as a string). Anything else is a fault.
class ArgumentsReader {
 public:
  std::size_t push(std::string_view text, CallWriter& writer, AnswerDelta& out);
  [[nodiscard]] ScanStatus status() const { return status_; }
  // Whether arguments can start with this byte.
  [[nodiscard]] static bool may_start(char c) { return c == '{' || c == '"'; }

 private:
  std::size_t push_string(std::string_view text, CallWriter& writer, AnswerDelta& out);

  enum class Kind : std::uint8_t { kNone, kObject, kString };

  ScanStatus status_ = ScanStatus::kReading;
  Kind kind_ = Kind::kNone;
  ValueScanner object_;
  JsonStringDecoder string_{true};
  std::string piece_;     // scratch
  bool is_empty_ = true;  // nothing of the string's value was passed on
};

}  // namespace berth::worker
