#include "worker/service/chat_tools.h"

#include <algorithm>
#include <boost/json.hpp>
#include <string_view>
#include <utility>

#include "common/text.h"
#include "worker/service/invalid_argument.h"

namespace berth::worker {
namespace {

namespace json = boost::json;

constexpr const char* kTools = "chat.tools_json";
constexpr const char* kChoice = "chat.tool_choice_json";
constexpr std::size_t kMaxChoiceBytes = std::size_t{4} << 10U;
constexpr std::size_t kMaxDepth = 8;

Result<json::value> parse_choice(std::string_view text) {
  if (text.size() > kMaxChoiceBytes) {
    return invalid_argument(kChoice, std::string(kChoice) + " has " + std::to_string(text.size()) +
                                         " bytes; at most " + std::to_string(kMaxChoiceBytes) +
                                         " are allowed.");
  }
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::error_code error;
  auto value = json::parse(text, error, {}, options);
  if (error) {
    return invalid_argument(kChoice, std::string(kChoice) + " is not JSON (nested at most " +
                                         std::to_string(kMaxDepth) + " deep): " + error.message() +
                                         ".");
  }
  return value;
}

// The name of the function that `value` names; null where it is not there.
const json::string* function_name(const json::value& value) {
  const auto* const object = value.if_object();
  const auto* const function = object == nullptr ? nullptr : object->if_contains("function");
  const auto* const members = function == nullptr ? nullptr : function->if_object();
  const auto* const name = members == nullptr ? nullptr : members->if_contains("name");
  return name == nullptr ? nullptr : name->if_string();
}

tl::unexpected<Error> bad_choice() {
  return invalid_argument(kChoice, R"(chat.tool_choice_json must be "auto", "none", "required" or )"
                                   R"({"type": "function", "function": {"name": …}}.)");
}

Result<ToolChoice> read_choice(std::string_view text) {
  using Kind = ToolChoice::Kind;
  if (text.empty()) return ToolChoice{};
  const auto value = parse_choice(text);
  if (!value) return fail(value.error());
  if (value->is_null()) return ToolChoice{};
  if (const auto* const word = value->if_string()) {
    if (*word == "auto") return ToolChoice{};
    if (*word == "none") return ToolChoice{Kind::kNone, {}};
    if (*word == "required") return ToolChoice{Kind::kRequired, {}};
    return bad_choice();
  }
  const auto* const name = function_name(*value);
  if (name == nullptr) return bad_choice();
  return ToolChoice{Kind::kNamed, {name->data(), name->size()}};
}

tl::unexpected<Error> unknown_tool(const ToolChoice& choice,
                                   const std::vector<std::string>& names) {
  ErrorExtras extras;
  extras.param = kChoice;
  extras.suggestions = nearest_names(choice.name, names);
  return fail(Error(Reason::kInvalidArgument,
                    "chat.tool_choice_json names \"" +
                        printable_line(choice.name, ToolBounds::kNameBytes) +
                        "\", which is none of the tools in chat.tools_json.",
                    std::move(extras)));
}

}  // namespace

std::vector<std::string> ChatTools::names() const {
  std::vector<std::string> all;
  all.reserve(tools.size());
  for (const auto& tool : tools) all.push_back(tool.name);
  return all;
}

Result<ChatTools> check_chat_tools(const v1::ChatInput& chat) {
  ChatTools tools;
  if (!chat.tools_json().empty()) {
    auto read = read_tools(chat.tools_json());
    if (!read) return fail(about(read.error(), kTools));
    tools.tools = std::move(*read);
  }
  auto choice = read_choice(chat.tool_choice_json());
  if (!choice) return fail(choice.error());
  tools.choice = std::move(*choice);
  if (tools.choice.is_forced()) {
    if (tools.tools.empty()) {
      return invalid_argument(
          kChoice,
          "chat.tool_choice_json wants a call of a tool, but there are none. Add "
          "chat.tools_json, or leave chat.tool_choice_json out.");
    }
    const bool known = std::any_of(tools.tools.begin(), tools.tools.end(), [&](const Tool& tool) {
      return tool.name == tools.choice.name;
    });
    if (tools.choice.kind == ToolChoice::Kind::kNamed && !known) {
      return unknown_tool(tools.choice, tools.names());
    }
  }
  if (tools.choice.kind == ToolChoice::Kind::kNone) tools.tools.clear();
  return tools;
}

}  // namespace berth::worker
