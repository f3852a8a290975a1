#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"

namespace berth::worker {

// A place in a grammar's text and the small things that can be read there: names, numbers,
// characters with their escapes, space and comments. Goes on behind what was read. For the parser;
// the text, which is well-formed UTF-8 without NUL, lives longer. Errors: kInvalidArgument with the
// line.
class GbnfReader {
 public:
  explicit GbnfReader(std::string_view text) : text_(text) {}

  [[nodiscard]] bool done() const { return position_ >= text_.size(); }
  [[nodiscard]] std::size_t line() const { return line_; }  // from 1
  // NUL behind the end.
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
  }
  // What comes, at most so many bytes.
  [[nodiscard]] std::string_view rest(std::size_t bytes) const {
    return text_.substr(position_, bytes);
  }
  // Over what peek() or rest() has shown, without a line break.
  void skip(std::size_t bytes = 1) { position_ += bytes; }

  // Blanks and comments, and line breaks where wanted.
  void space(bool newlines);

  [[nodiscard]] bool starts_name() const;
  [[nodiscard]] bool starts_number() const;
  Result<std::string_view> name();  // empty: none is here
  Result<std::uint64_t> number();
  // Of a literal or a class.
  Result<std::uint32_t> character();

  // With the present line.
  [[nodiscard]] tl::unexpected<Error> error(const std::string& what) const;
  [[nodiscard]] tl::unexpected<Error> expected(const std::string& what) const;

 private:
  Result<std::uint32_t> escape();

  std::string_view text_;
  std::size_t position_ = 0;
  std::size_t line_ = 1;
};

}  // namespace berth::worker
