#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace berth::worker {

// How a chat template's tool calls look as JSON: {"name": "f", "arguments": {…}}; Llama 3 says
// "parameters".
struct ToolCallKeys {
  std::string name = "name";
  std::string arguments = "arguments";
};

// The same whatever a request does with its tools. Their JSON text has the bounds of SchemaBounds.
struct ToolBounds {
  static constexpr std::size_t kTools = 256;
  static constexpr std::size_t kNameBytes = 256;
};

struct Tool {
  std::size_t index = 0;  // in the list
  std::string name;
  boost::json::value parameters;  // a JSON schema, an object; its keywords are not checked yet
};

// Reads the `tools` of OpenAI's chat completions, perhaps none: an array of {"type": "function",
// "function": {"name", "description", "parameters", "strict"}}, where `type` may be missing. A
// function without parameters takes an empty object. Errors: kInvalidArgument, names the tool by
// its index.
Result<std::vector<Tool>> read_tools(std::string_view tools_json);

// The JSON schema of one call of any of `tools`, which has at least one. A $ref within parameters
// means the parameters, as their own document. The arguments are an object even where parameters
// allow other values too, or say nothing ({}).
//
// The result is for json_schema_to_gbnf; what its parameters may hold is checked there, and named
// by pointers such as #/$defs/tool-0/properties/city.
std::string tool_call_schema(std::span<const Tool> tools, const ToolCallKeys& keys = {});

// The JSON schema of the arguments alone, an object too.
std::string arguments_schema(const Tool& tool);

// tool_call_schema() for the text of `tools`; with `only`, of a call of the function of that name.
// Errors: as read_tools(), and kInvalidArgument where there is no such tool, or none at all.
Result<std::string> tool_call_schema(std::string_view tools_json,
                                     const std::optional<std::string>& only = std::nullopt,
                                     const ToolCallKeys& keys = {});

}  // namespace berth::worker
