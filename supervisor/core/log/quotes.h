#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace berth::core {

// Quotation marks in the text of a program's message: the straight ones, the backtick, and the
// typographic pairs.

// Whether a quotation opens with the last character of `text`: "msg='", "(“", "b'". The end of one
// does not: "'kestrel'", "can't".
bool ends_in_opening_quote(std::string_view text);

struct OpenQuote {
  std::string_view close;  // what closes it
  std::size_t end = 0;     // offset behind the quotation mark
};
// The first quotation mark before offset `limit` that opens a quotation.
std::optional<OpenQuote> first_opening_quote(std::string_view text, std::size_t limit);

// Whether `text` holds the closing mark at its end or before something other than a letter or a
// digit; an apostrophe within a word closes nothing.
bool closes_quote(std::string_view text, std::string_view close);

}  // namespace berth::core
