#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace berth::worker {

// How a chat template's tool calls look as JSON: {"name": "f", "arguments": {…}}; Llama 3 says
// "parameters".
struct ToolCallKeys {
  std::string name = "name";
  std::string arguments = "arguments";
};

struct ToolBounds {
  static constexpr std::size_t kTools = 256;
  static constexpr std::size_t kNameBytes = 256;
};

// The JSON schema of one tool call, made from `tools` of OpenAI's chat completions: an array of
// {"type": "function", "function": {"name", "description", "parameters", "strict"}}. With `only`,
// the call is of the function of that name (tool_choice with a function); else of any of them
// (tool_choice "required"). A function without parameters takes an empty object. A $ref within
// parameters means the parameters, as their own document.
//
// The result is for json_schema_to_gbnf; what its parameters may hold is checked there, and named
// by pointers such as #/$defs/tool-0/properties/city.
// Errors: kInvalidArgument, names the tool by its index.
Result<std::string> tool_call_schema(std::string_view tools_json,
                                     const std::optional<std::string>& only = std::nullopt,
                                     const ToolCallKeys& keys = {});

}  // namespace berth::worker
