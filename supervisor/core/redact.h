#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace berth::core {

// What may be carried of a line that a child wrote (L16, D16 to D18): one printable line of at most
// `limit` bytes, cut at a character, in which everything from the first to the last path-shaped
// token is one `<path>`. Tokens are separated by blanks; path-shaped is one that holds `/` or `\`.
// The span goes on to a later token that ends in a model file's extension, and to the end of a
// quotation that the first token opens, so that a path with blanks leaks no word.
std::string carried_text(std::string_view line, std::size_t limit = 300);

}  // namespace berth::core
