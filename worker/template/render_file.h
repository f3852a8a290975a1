#pragma once

#include <string>

#include "common/result.h"

namespace berth::worker {

// Renders a file's template with a file's conversation: how a template is tried out, and compared
// with another renderer. The conversation is a JSON object with messages, and where wanted tools,
// chat_template_kwargs, add_generation_prompt, bos_token, eos_token, now (seconds since 1970) and
// control_texts. `adapt`: what the template would get instead of what it makes, as JSON.
// Errors: kNotFound where a file cannot be read; those of ChatTemplate.
Result<std::string> render_file(const std::string& template_path, const std::string& input_path,
                                bool adapt);

}  // namespace berth::worker
