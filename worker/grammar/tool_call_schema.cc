#include "worker/grammar/tool_call_schema.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <unordered_set>
#include <utility>

#include "common/text.h"
#include "worker/grammar/schema_document.h"

namespace berth::worker {
namespace json = boost::json;
namespace {

tl::unexpected<Error> tool_error(std::size_t index, const std::string& what) {
  return fail(Reason::kInvalidArgument, "tools[" + std::to_string(index) + "]: " + what + ".");
}

std::string quoted(std::string_view text) {
  return "`" + printable_line(text, 60) + "`";
}

// Makes the references of a document that is moved to #/$defs/<id> lead there. Goes down only
// where schemas stand, so that a value in an enum stays as it is. Depth: that of the JSON text.
void move_references(json::value& schema, const std::string& to) {
  if (!schema.is_object()) return;
  for (auto& member : schema.get_object()) {
    auto& value = member.value();
    switch (keyword_shape({member.key().data(), member.key().size()})) {
      case KeywordShape::kReference:
        if (value.is_string() && value.get_string().starts_with('#')) {
          value = to + std::string(value.get_string()).substr(1);
        }
        break;
      case KeywordShape::kSchema:
        move_references(value, to);
        break;
      case KeywordShape::kSchemaList:
        if (!value.is_array()) break;
        for (auto& one : value.get_array()) move_references(one, to);
        break;
      case KeywordShape::kSchemaMap:
      case KeywordShape::kDefinitions:
        if (!value.is_object()) break;
        for (auto& one : value.get_object()) move_references(one.value(), to);
        break;
      case KeywordShape::kUnknown:
      case KeywordShape::kAnnotation:
      case KeywordShape::kType:
      case KeywordShape::kValue:
      case KeywordShape::kValueList:
      case KeywordShape::kNames:
      case KeywordShape::kCount:
      case KeywordShape::kNumber:
      case KeywordShape::kText:
      case KeywordShape::kFlag:
      case KeywordShape::kFalse:
        break;
    }
  }
}

json::value moved_parameters(const Tool& tool, const std::string& to) {
  auto parameters = tool.parameters;
  move_references(parameters, to);
  return parameters;
}

Result<Tool> read_tool(const json::value& entry, std::size_t index) {
  if (!entry.is_object()) return tool_error(index, "must be an object");
  const auto& object = entry.get_object();
  const auto* type = object.if_contains("type");
  if (type != nullptr && *type != "function") {
    return tool_error(index, "`type` must be `function`; other tools are not supported");
  }
  const auto* function = object.if_contains("function");
  if (function == nullptr || !function->is_object()) {
    return tool_error(index, "`function` must be an object");
  }
  const auto* name = function->get_object().if_contains("name");
  if (name == nullptr || !name->is_string() || name->get_string().empty() ||
      name->get_string().size() > ToolBounds::kNameBytes) {
    return tool_error(index, "`function.name` must be a string of 1 to " +
                                 std::to_string(ToolBounds::kNameBytes) + " bytes");
  }
  const auto* strict = function->get_object().if_contains("strict");
  if (strict != nullptr && !strict->is_bool() && !strict->is_null()) {
    return tool_error(index, "`function.strict` must be true or false");
  }
  Tool tool{index, std::string(name->get_string()), {}};
  const auto* parameters = function->get_object().if_contains("parameters");
  if (parameters == nullptr || parameters->is_null()) {
    tool.parameters = json::object{{"type", "object"}, {"additionalProperties", false}};
    return tool;
  }
  if (!parameters->is_object()) {
    return tool_error(index, "`function.parameters` must be a JSON schema, an object");
  }
  tool.parameters = *parameters;
  return tool;
}

// Whether a schema says by itself that it is about objects only, as nearly all do.
bool is_of_objects(const json::value& schema) {
  const auto& object = schema.get_object();
  const auto* type = object.if_contains("type");
  return type != nullptr && *type == "object" && !object.contains("nullable");
}

// What calls are read as: the arguments of one are an object, whatever else `parameters` allow.
json::value arguments_by(const Tool& tool, const std::string& reference) {
  json::object parameters{{"$ref", reference}};
  if (is_of_objects(tool.parameters)) return parameters;
  return json::object{
      {"allOf", json::array{std::move(parameters), json::object{{"type", "object"}}}}};
}

std::string definition_of(const Tool& tool) {
  return "tool-" + std::to_string(tool.index);
}

json::value call_schema(const Tool& tool, const std::string& reference, const ToolCallKeys& keys) {
  json::object properties;
  properties[keys.name] = json::object{{"const", tool.name}};
  properties[keys.arguments] = arguments_by(tool, reference);
  json::object call;
  call["type"] = "object";
  call["properties"] = std::move(properties);
  call["required"] = json::array{keys.name, keys.arguments};
  call["additionalProperties"] = false;
  return call;
}

}  // namespace

Result<std::vector<Tool>> read_tools(std::string_view tools_json) {
  const auto value = parse_bounded_json(tools_json, "`tools`");
  if (!value) return fail(value.error());
  if (!value->is_array())
    return fail(Reason::kInvalidArgument, "`tools` must be an array of tools.");
  const auto& list = value->get_array();
  if (list.size() > ToolBounds::kTools) {
    return fail(Reason::kInvalidArgument, "`tools` has " + std::to_string(list.size()) +
                                              " tools; at most " +
                                              std::to_string(ToolBounds::kTools) + " are allowed.");
  }
  std::vector<Tool> tools;
  std::unordered_set<std::string> names;
  for (std::size_t i = 0; i < list.size(); ++i) {
    auto tool = read_tool(list[i], i);
    if (!tool) return fail(tool.error());
    if (!names.insert(tool->name).second) {
      return tool_error(i, "a function " + quoted(tool->name) + " is there already; rename one");
    }
    tools.push_back(std::move(*tool));
  }
  return tools;
}

std::string tool_call_schema(std::span<const Tool> tools, const ToolCallKeys& keys) {
  json::object definitions;
  json::array calls;
  for (const auto& tool : tools) {
    const auto id = definition_of(tool);
    calls.push_back(call_schema(tool, "#/$defs/" + id, keys));
    definitions[id] = moved_parameters(tool, "#/$defs/" + id);
  }
  json::object schema;
  schema["$defs"] = std::move(definitions);
  schema["anyOf"] = std::move(calls);
  return json_text(schema);
}

std::string arguments_schema(const Tool& tool) {
  if (is_of_objects(tool.parameters)) return json_text(tool.parameters);
  const auto id = definition_of(tool);
  const auto to = "#/$defs/" + id;
  auto schema = arguments_by(tool, to).get_object();
  schema["$defs"] = json::object{{id, moved_parameters(tool, to)}};
  return json_text(schema);
}

Result<std::string> tool_call_schema(std::string_view tools_json,
                                     const std::optional<std::string>& only,
                                     const ToolCallKeys& keys) {
  const auto tools = read_tools(tools_json);
  if (!tools) return fail(tools.error());
  if (tools->empty()) {
    return fail(Reason::kInvalidArgument, "`tools` must be an array of at least one tool.");
  }
  if (!only) return tool_call_schema(std::span(*tools), keys);
  const auto chosen = std::find_if(tools->begin(), tools->end(),
                                   [&](const Tool& tool) { return tool.name == *only; });
  if (chosen == tools->end()) {
    return fail(Reason::kInvalidArgument, "The tool choice names the function " + quoted(*only) +
                                              ", which is not among `tools`.");
  }
  return tool_call_schema(std::span(&*chosen, 1), keys);
}

}  // namespace berth::worker
