#include <array>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <string>

#include "supervisor/gateway/openai/json_body.h"
#include "supervisor/gateway/openai/text_fields.h"

namespace berth::gateway::openai {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxMessages = 10'000;  // of a template (docs/templates.md)
constexpr std::size_t kMaxTools = 256;        // docs/structured-output.md

std::string indexed(const std::string& list, std::size_t index) {
  return list + "[" + std::to_string(index) + "]";
}

// The worker joins text parts. What is no text is refused here, before a model is loaded for it.
void check_part(const json::value& value, const std::string& path, FirstError& errors) {
  const json::object* object = value.if_object();
  if (object == nullptr) {
    return errors.add(path, path + " must be an object, not " + describe(value) + ".");
  }
  const Fields part(*object, path, errors);
  const std::string type = part.text("type").value_or("");
  if (errors.any()) return;
  if (type == "text") {
    if (part.find("text") == nullptr)
      return part.refuse("text", part.path("text") + " is missing.");
    part.text("text");
    return;
  }
  if (type.empty()) return part.refuse("type", part.path("type") + " is missing.");
  part.refuse("type", part.path("type") + " is " + describe(json::string(type)) +
                          ", but only parts of type \"text\" can be read.");
}

void check_message(const json::value& value, const std::string& path, FirstError& errors) {
  const json::object* object = value.if_object();
  if (object == nullptr) {
    return errors.add(path, path + " must be an object, not " + describe(value) + ".");
  }
  const Fields message(*object, path, errors);
  if (message.text("role").value_or("").empty()) {
    message.refuse("role", message.path("role") + " is missing: give a text such as \"user\".");
  }
  message.list("tool_calls");
  const json::value* content = message.find("content");
  if (content == nullptr || content->is_string()) return;
  const json::array* parts = content->if_array();
  if (parts == nullptr) {
    return message.refuse_value("content", "a text or a list of parts", *content);
  }
  for (std::size_t i = 0; i < parts->size() && !errors.any(); ++i) {
    check_part((*parts)[i], indexed(message.path("content"), i), errors);
  }
}

// The name of the function that a tool is; empty where something is wrong with it.
std::string check_tool(const json::value& value, const std::string& path, FirstError& errors) {
  const json::object* object = value.if_object();
  if (object == nullptr) {
    errors.add(path, path + " must be an object, not " + describe(value) + ".");
    return {};
  }
  const Fields tool(*object, path, errors);
  const std::string type = tool.text("type").value_or("function");
  if (type != "function") {
    tool.refuse("type", tool.path("type") + " is " + describe(json::string(type)) +
                            ", but only tools of type \"function\" are supported.");
  }
  const std::optional<Fields> function = tool.object("function");
  if (!function) {
    tool.refuse("function", tool.path("function") + " is missing.");
    return {};
  }
  std::string name = function->text("name").value_or("");
  if (name.empty()) function->refuse("name", function->path("name") + " is missing.");
  function->object("parameters");
  return name;
}

// "required", or the one function that has to be called.
void read_choice(const Fields& body, const std::vector<std::string>& tools, core::ChatInput& to) {
  const json::value* choice = body.find("tool_choice");
  if (choice == nullptr) return;
  to.tool_choice_json = json::serialize(*choice);
  if (const json::string* word = choice->if_string()) {
    if (*word == "auto" || *word == "none") return;
    if (*word == "required") {
      if (tools.empty())
        body.refuse("tool_choice", "tool_choice wants a call, but tools has none.");
      return;
    }
  }
  constexpr std::string_view kWanted =
      R"("auto", "none", "required" or {"type": "function", "function": {"name": …}})";
  if (!choice->is_object()) return body.refuse_value("tool_choice", kWanted, *choice);
  const std::optional<Fields> fields = body.object("tool_choice");
  const std::optional<Fields> function = fields->object("function");
  if (!function) return body.refuse_value("tool_choice", kWanted, *choice);
  const std::string name = function->text("name").value_or("");
  for (const std::string& tool : tools) {
    if (tool == name) return;
  }
  function->refuse("name", function->path("name") + " is " + describe(json::string(name)) +
                               ", which is none of the tools.");
}

}  // namespace

void read_messages(const Fields& body, core::ChatInput& to) {
  const json::array* messages = body.list("messages");
  if (messages == nullptr || messages->empty()) {
    return body.refuse("messages", "messages must be a list of at least one message.");
  }
  if (messages->size() > kMaxMessages) {
    return body.refuse("messages", "There are " + std::to_string(messages->size()) +
                                       " messages; at most 10000 are allowed.");
  }
  for (std::size_t i = 0; i < messages->size() && !body.errors().any(); ++i) {
    check_message((*messages)[i], indexed("messages", i), body.errors());
  }
  if (!body.errors().any()) to.messages_json = json::serialize(*messages);
}

void read_tools(const Fields& body, TextRequest& to, core::ChatInput& chat) {
  for (const std::string_view old : {"functions", "function_call"}) {
    if (body.find(old) == nullptr) continue;
    body.refuse(old, std::string(old) + " is not supported. Use tools and tool_choice.");
  }
  std::vector<std::string> names;
  if (const json::array* tools = body.list("tools")) {
    if (tools->size() > kMaxTools) {
      return body.refuse("tools", "There are " + std::to_string(tools->size()) +
                                      " tools; at most 256 are allowed.");
    }
    for (std::size_t i = 0; i < tools->size() && !body.errors().any(); ++i) {
      names.push_back(check_tool((*tools)[i], indexed("tools", i), body.errors()));
    }
    if (!tools->empty() && !body.errors().any()) chat.tools_json = json::serialize(*tools);
  }
  if (!body.errors().any()) read_choice(body, names, chat);
  to.parallel_tool_calls = body.flag("parallel_tool_calls").value_or(true);
}

}  // namespace berth::gateway::openai
