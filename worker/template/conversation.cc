#include "worker/template/conversation.h"

#include <algorithm>
#include <array>
#include <exception>
#include <string>
#include <utility>

#include "common/text.h"

namespace berth::worker {
namespace {

constexpr std::size_t kShownBytes = 80;
constexpr std::size_t kRoleBytes = 64;

tl::unexpected<Error> wrong(std::string message) {
  return invalid_argument(kMessagesParam, std::move(message));
}

std::string not_a(const Json& value) {
  return ", not " + std::string(value.type_name()) + ".";
}

bool is_image(const Json& part) {
  const auto type = part.find("type");
  if (type == part.end() || !type->is_string()) return false;
  const auto& name = type->get_ref<const std::string&>();
  return name == "image_url" || name == "image" || name == "input_image";
}

// Content that is an array of text parts becomes one text.
Status join_parts(Json& content, const std::string& message) {
  std::string text;
  for (std::size_t index = 0; index < content.size(); ++index) {
    const auto& part = content[index];
    const auto here = message + ".content[" + std::to_string(index) + "]";
    if (!part.is_object()) return wrong(here + " must be an object" + not_a(part));
    if (is_image(part)) return wrong(here + ": images are not supported by this model.");
    const auto type = part.find("type");
    if (type == part.end() || *type != "text") {
      return wrong(here + " is not a text part; only text can be read.");
    }
    const auto value = part.find("text");
    if (value == part.end() || !value->is_string()) return wrong(here + ".text must be a string.");
    text += value->get_ref<const std::string&>();
  }
  content = std::move(text);
  return {};
}

bool is_known_role(const std::string& role, std::string_view template_source) {
  constexpr std::array<std::string_view, 6> kRoles = {"system",    "developer", "user",
                                                      "assistant", "tool",      "function"};
  if (std::find(kRoles.begin(), kRoles.end(), role) != kRoles.end()) return true;
  if (role.size() > kRoleBytes) return false;
  const auto quoted = [&](char quote) {
    return template_source.find(quote + role + quote) != std::string_view::npos;
  };
  return quoted('\'') || quoted('"');
}

// A role is a part of the prompt's frame in many templates ("<|" + role + "|>"), so that a role of
// the client's own could end its message.
Status check_role(Json& message, const std::string& where, std::string_view template_source) {
  const auto role = message.find("role");
  if (role == message.end()) return wrong(where + " has no role.");
  if (!role->is_string() || role->get_ref<const std::string&>().empty()) {
    return wrong(where + ".role must be a string such as \"user\".");
  }
  const auto& name = role->get_ref<const std::string&>();
  if (!is_known_role(name, template_source)) {
    return wrong(where + ".role is \"" + printable_line(name, kShownBytes) +
                 "\"; this model knows system, developer, user, assistant and tool.");
  }
  if (name == "developer" && template_source.find("developer") == std::string_view::npos) {
    *role = "system";
  }
  return {};
}

// Arguments come as a text of JSON (OpenAI's form) or as an object.
void read_arguments(Json& function) {
  function.erase(kArgumentsText);
  auto& arguments = function["arguments"];
  if (arguments.is_null()) arguments = Json::object();
  if (!arguments.is_string()) return;
  auto parsed = parse_object(arguments.get_ref<const std::string&>(), kMessagesParam, "");
  if (!parsed) return;
  auto text = std::exchange(arguments, std::move(*parsed));
  function[kArgumentsText] = std::move(text);
}

Status check_call(Json& call, const std::string& here) {
  if (!call.is_object()) return wrong(here + " must be an object" + not_a(call));
  if (!call.contains("function")) {
    if (!call.contains("name")) return wrong(here + " has no function.");
    Json function = Json::object();
    function["name"] = call["name"];
    function["arguments"] = call.contains("arguments") ? call["arguments"] : Json();
    call.erase("name");
    call.erase("arguments");
    call["function"] = std::move(function);
  }
  if (!call.contains("type")) call["type"] = "function";
  auto& function = call["function"];  // until something is inserted beside it
  if (!function.is_object()) return wrong(here + ".function must be an object" + not_a(function));
  const auto name = function.find("name");
  if (name == function.end() || !name->is_string() || name->get_ref<const std::string&>().empty()) {
    return wrong(here + ".function.name must be a string.");
  }
  read_arguments(function);
  const auto& arguments = function["arguments"];
  if (!arguments.is_object() && !arguments.is_string()) {
    return wrong(here + ".function.arguments must be an object or a string" + not_a(arguments));
  }
  return {};
}

Status check_calls(Json& message, const std::string& where) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end()) return {};
  if (calls->is_null() || (calls->is_array() && calls->empty())) {
    message.erase("tool_calls");  // templates ask whether it is there
    return {};
  }
  if (!calls->is_array()) return wrong(where + ".tool_calls must be an array.");
  for (std::size_t index = 0; index < calls->size(); ++index) {
    const auto here = where + ".tool_calls[" + std::to_string(index) + "]";
    if (auto checked = check_call((*calls)[index], here); !checked) return checked;
  }
  return {};
}

Status check_content(Json& message, const std::string& where) {
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) {
    if (!message.contains("tool_calls")) return wrong(where + " has no content.");
    message["content"] = nullptr;
    return {};
  }
  if (content->is_array()) return join_parts(*content, where);
  if (!content->is_string()) {
    return wrong(where + ".content must be a string or an array of parts" + not_a(*content));
  }
  return {};
}

// The model's thoughts, which templates know by two names.
Status check_reasoning(Json& message, const std::string& where, std::string_view template_source) {
  const auto reasoning = message.find("reasoning_content");
  if (reasoning == message.end()) return {};
  if (reasoning->is_null()) {
    message.erase("reasoning_content");
    return {};
  }
  if (!reasoning->is_string()) return wrong(where + ".reasoning_content must be a string.");
  const auto knows = [template_source](std::string_view name) {
    return template_source.find(name) != std::string_view::npos;
  };
  if (knows(".thinking") && !knows("reasoning_content") && !message.contains("thinking")) {
    auto text = *reasoning;
    message["thinking"] = std::move(text);
  }
  return {};
}

Status check_message(Json& message, std::size_t index, std::string_view template_source) {
  const auto where = "messages[" + std::to_string(index) + "]";
  if (!message.is_object()) return wrong(where + " must be an object" + not_a(message));
  if (auto checked = check_role(message, where, template_source); !checked) return checked;
  if (auto checked = check_calls(message, where); !checked) return checked;
  if (auto checked = check_content(message, where); !checked) return checked;
  return check_reasoning(message, where, template_source);
}

// Some templates want the name of a result's tool; OpenAI's messages give the id of its call.
void name_tools(Json& messages) {
  for (std::size_t index = 0; index < messages.size(); ++index) {
    auto& message = messages[index];
    if (message["role"] != "tool" || message.contains("name")) continue;
    const auto id = message.value("tool_call_id", Json());
    if (id.is_null()) continue;
    for (std::size_t before = index; before-- > 0 && !message.contains("name");) {
      const auto calls = messages[before].find("tool_calls");
      if (calls == messages[before].end()) continue;
      for (const auto& call : *calls) {
        if (call.value("id", Json()) == id) message["name"] = call["function"]["name"];
      }
      break;  // results follow the message with their calls
    }
  }
}

Result<Json> read_tools(std::string_view text) {
  auto tools = parse_array(text, kToolsParam, "The tools");
  if (!tools) return tools;
  for (std::size_t index = 0; index < tools->size(); ++index) {
    const auto& tool = (*tools)[index];
    if (!tool.is_object()) {
      return invalid_argument(
          kToolsParam, "tools[" + std::to_string(index) + "] must be an object" + not_a(tool));
    }
  }
  if (tools->empty()) return Json();
  return tools;
}

}  // namespace

Result<Conversation> read_conversation(const ChatRequest& request,
                                       std::string_view template_source) {
  Conversation conversation;
  conversation.add_generation_prompt = request.add_generation_prompt;
  auto messages = parse_array(request.messages_json, kMessagesParam, "The messages");
  if (!messages) return fail(messages.error());
  if (messages->empty()) return wrong("The array of messages is empty.");
  for (std::size_t index = 0; index < messages->size(); ++index) {
    if (auto checked = check_message((*messages)[index], index, template_source); !checked) {
      return fail(checked.error());
    }
  }
  conversation.messages = std::move(*messages);
  name_tools(conversation.messages);
  if (!request.tools_json.empty()) {
    auto tools = read_tools(request.tools_json);
    if (!tools) return fail(tools.error());
    conversation.tools = std::move(*tools);
  }
  if (!request.variables_json.empty()) {
    auto variables =
        parse_object(request.variables_json, kVariablesParam, "The template's variables");
    if (!variables) return fail(variables.error());
    conversation.variables = std::move(*variables);
  }
  return conversation;
}

}  // namespace berth::worker
