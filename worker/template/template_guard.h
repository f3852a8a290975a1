#pragma once

#include <string>
#include <string_view>

#include "common/result.h"
#include "worker/template/input_bounds.h"

namespace berth::worker {

// The template as it is given to minja, whose own handling of white space is to be off. One pass,
// any thread. What Jinja's lexer does with a template's text is done here, as Jinja does it with
// trim_blocks and lstrip_blocks (which is how models' templates are meant): line ends, `-` and `+`
// in tags, comments, raw blocks and the escapes of strings. Errors: kTemplateFailed, says which
// bound is passed and at which byte, or what is not closed.
Result<std::string> guard_template(std::string_view source);

}  // namespace berth::worker
