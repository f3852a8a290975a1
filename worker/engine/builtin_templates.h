#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace berth::worker {

// A message for libllama's own chat templates, which know only texts.
struct FlatMessage {
  std::string role;
  std::string content;
};

// Chat templates that the inference library brings along: code, not Jinja. Any thread. Without
// functions there are none.
struct BuiltinTemplates {
  // Whether there is one of this name ("chatml").
  bool (*has)(std::string_view name) = nullptr;
  // All names, in no order.
  std::vector<std::string> (*names)() = nullptr;
  // The prompt, by the template of a name, or by the one that resembles a Jinja template.
  // Errors: kTemplateFailed where there is none, or it cannot take these messages.
  Result<std::string> (*apply)(const std::string& name_or_source,
                               std::span<const FlatMessage> messages,
                               bool add_generation_prompt) = nullptr;
};

}  // namespace berth::worker
