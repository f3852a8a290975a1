#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/result.h"

namespace berth::worker {

// What a template may have so that parsing it cannot overflow the stack: minja's parser goes down
// with every bracket, block and operator, and its regular expressions with every character of what
// they match.
struct TemplateBounds {
  static constexpr std::size_t kBytes = std::size_t{256} << 10U;
  static constexpr int kDepth = 200;                                // of brackets, of blocks
  static constexpr std::size_t kTagBytes = std::size_t{16} << 10U;  // of one {{ }} or {% %}
  // Characters in a row that are white space, commas or parts of names.
  static constexpr std::size_t kRunBytes = std::size_t{16} << 10U;
};

// The template as it is given to minja, whose own handling of white space is to be off. One pass,
// any thread. What Jinja's lexer does with a template's text is done here, as Jinja does it with
// trim_blocks and lstrip_blocks (which is how models' templates are meant): line ends, `-` and `+`
// in tags, comments, raw blocks and the escapes of strings. Errors: kTemplateFailed, says which
// bound is passed and at which byte, or what is not closed.
Result<std::string> guard_template(std::string_view source);

}  // namespace berth::worker
