#pragma once

#include <string>
#include <string_view>

#include "common/result.h"

namespace berth::worker {

// A string literal of a template, read as Python reads it and written as minja reads it: minja
// knows fewer escapes and drops the backslash of those that it does not know. `content` is what
// stands between the quotes. The result has quotes of its own, and no "{#" that could be taken for
// the begin of a comment. Errors: kTemplateFailed, says which escape is wrong.
Result<std::string> minja_string_literal(std::string_view content);

// A literal of minja's that stands for `text`.
std::string minja_quoted(std::string_view text);

}  // namespace berth::worker
