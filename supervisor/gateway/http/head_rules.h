#pragma once

#include <cstddef>
#include <string_view>

#include "common/result.h"

namespace berth::gateway {

// What a request's head must be before anything reads meaning into it: what two programs could
// take for two different requests (smuggling) is refused, whatever a parser would make of it.

// Watches a head while it arrives.
class HeadScan {
 public:
  // `bytes` is all that has come since the head began; bytes that were seen before are not looked
  // at again. Returns the head's length with its empty line, or 0 while that has not come. Errors:
  // kInvalidArgument for a control character, a line that does not end in CRLF, or what is no
  // request line; kHeadersTooLarge.
  Result<std::size_t> scan(std::string_view bytes);

 private:
  std::size_t seen_ = 0;
  std::size_t line_ = 0;  // where the last line begins
  std::size_t fields_ = 0;
};

// Checks a whole head with its empty line, as RFC 9112 writes it: the request line, field names, no
// folded lines, one Host, at most one Content-Length or the one Transfer-Encoding "chunked", and no
// second field where two would be ambiguous. Errors: kInvalidArgument.
Status check_head(std::string_view head);

}  // namespace berth::gateway
