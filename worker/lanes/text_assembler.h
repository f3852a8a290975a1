#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth::worker {

// Turns a stream of bytes into well-formed UTF-8, whatever the borders of its parts: a character
// that is not complete yet is held back, and what can never become one is replaced by U+FFFD (one
// per maximal part of a character, as Unicode recommends). Not thread-safe.
class Utf8Assembler {
 public:
  // Appends what is certain now.
  void push(std::string_view bytes, std::string& out);
  // No more bytes: an incomplete character becomes U+FFFD.
  void finish(std::string& out);

 private:
  void drop_pending(std::string& out);

  std::array<char, 4> pending_{};  // start of a character
  std::size_t pending_size_ = 0;
  std::size_t wanted_ = 0;  // bytes of the character that is pending
  unsigned char low_ = 0;   // range of its next byte
  unsigned char high_ = 0;
};

// Looks for the first of several texts in a stream, whatever the borders of its parts, and holds
// back only what could still become one of them. "First" is the one that is complete first; of
// several that are complete at the same byte, the longest. Not thread-safe.
class StopMatcher {
 public:
  StopMatcher() = default;
  // None of `texts` is empty.
  explicit StopMatcher(std::vector<std::string> texts);

  // Appends what is certainly before any stop text. Returns whether a stop text is complete: then
  // the rest is dropped, and push() is not called again.
  bool push(std::string_view text, std::string& out);
  // No more text: appends what was held back.
  void finish(std::string& out);
  // The text that was met; empty before.
  [[nodiscard]] const std::string& met() const { return met_; }

 private:
  struct Pattern {
    std::string text;
    // Knuth-Morris-Pratt: fallback[n] = length of the longest border of the first n bytes.
    std::vector<std::uint16_t> fallback;
    std::size_t matched = 0;
  };
  std::vector<Pattern> patterns_;
  std::string held_;  // could be the start of a stop text; shorter than the longest of them
  std::string met_;
};

// From a token's bytes to the text that may be sent: UTF-8 first, then stop texts.
class TextAssembler {
 public:
  TextAssembler() = default;
  explicit TextAssembler(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // Both append to `out`. push() returns whether a stop text was met.
  bool push(std::string_view bytes, std::string& out);
  // The answer is over; returns whether its very end met a stop text.
  bool finish(std::string& out);
  [[nodiscard]] const std::string& met() const { return stops_.met(); }

 private:
  Utf8Assembler utf8_;
  StopMatcher stops_;
  std::string characters_;  // scratch
};

}  // namespace berth::worker
