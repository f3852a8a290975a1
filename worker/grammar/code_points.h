#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth::worker {

constexpr std::uint32_t kLastCodePoint = 0x10FFFF;

// A set of Unicode code points, as a character class of a regular expression describes one.
class CodePointSet {
 public:
  struct Range {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
  };

  // first <= last <= kLastCodePoint.
  void add(std::uint32_t first, std::uint32_t last) { ranges_.push_back({first, last}); }
  void add(const CodePointSet& other);
  // Everything else up to kLastCodePoint.
  [[nodiscard]] CodePointSet complement() const;
  [[nodiscard]] CodePointSet without(const CodePointSet& other) const;
  [[nodiscard]] bool contains(std::uint32_t code_point) const;
  // In order, apart from one another.
  [[nodiscard]] std::vector<Range> ranges() const;

 private:
  std::vector<Range> ranges_;
};

// A quoted GBNF literal that matches exactly `text`, which is well-formed UTF-8.
std::string gbnf_literal(std::string_view text);
// A GBNF character class, or a literal for a single code point. The set is not empty.
std::string gbnf_class(const CodePointSet& set);
// GBNF for what stands for one character of the set within a JSON string: itself, or its escape
// where JSON demands one. Empty where nothing can: control characters without a short escape are
// left out unless they stand alone.
std::string gbnf_json_character(const CodePointSet& set);

}  // namespace berth::worker
