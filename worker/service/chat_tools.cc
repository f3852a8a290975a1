#include "worker/service/chat_tools.h"

#include <algorithm>
#include <boost/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "common/text.h"
#include "worker/service/invalid_argument.h"

namespace berth::worker {
namespace {

namespace json = boost::json;

constexpr const char* kTools = "chat.tools_json";
constexpr const char* kChoice = "chat.tool_choice_json";
constexpr std::size_t kMaxTools = 1024;
constexpr std::size_t kMaxToolsBytes = std::size_t{16} << 20U;
constexpr std::size_t kMaxChoiceBytes = std::size_t{4} << 10U;
constexpr std::size_t kMaxNameBytes = 256;
constexpr std::size_t kMaxDepth = 64;

Result<json::value> parse(std::string_view text, const char* param, std::size_t max_bytes) {
  if (text.size() > max_bytes) {
    return invalid(param, std::string(param) + " has " + std::to_string(text.size()) +
                              " bytes; at most " + std::to_string(max_bytes) + " are allowed.");
  }
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::error_code error;
  auto value = json::parse(text, error, {}, options);
  if (error) {
    return invalid(param, std::string(param) + " is not JSON (nested at most " +
                              std::to_string(kMaxDepth) + " deep): " + error.message() + ".");
  }
  return value;
}

// The string `key` of the object `function` of `value`; null where it is not there.
const json::string* function_name(const json::value& value) {
  const auto* const object = value.if_object();
  const auto* const function = object == nullptr ? nullptr : object->if_contains("function");
  const auto* const members = function == nullptr ? nullptr : function->if_object();
  const auto* const name = members == nullptr ? nullptr : members->if_contains("name");
  return name == nullptr ? nullptr : name->if_string();
}

Status read_names(std::string_view text, std::vector<std::string>& out) {
  const auto value = parse(text, kTools, kMaxToolsBytes);
  if (!value) return fail(value.error());
  const auto* const tools = value->if_array();
  if (tools == nullptr) return invalid(kTools, "chat.tools_json must be an array.");
  if (tools->size() > kMaxTools) {
    return invalid(
        kTools, "There are " + std::to_string(tools->size()) + " tools; at most 1024 are allowed.");
  }
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < tools->size(); ++i) {
    const auto which = "tools[" + std::to_string(i) + "]";
    const auto* const name = function_name((*tools)[i]);
    if (name == nullptr || name->empty() || name->size() > kMaxNameBytes) {
      return invalid(kTools, which + R"( must be {"type": "function", "function": {"name": …, …}} )"
                                     "with a name of 1 to 256 bytes.");
    }
    if (!seen.insert(std::string_view(name->data(), name->size())).second) {
      return invalid(kTools, which + " has the name of another tool, \"" +
                                 printable_line({name->data(), name->size()}, kMaxNameBytes) +
                                 "\".");
    }
    out.emplace_back(name->data(), name->size());
  }
  return {};
}

tl::unexpected<Error> bad_choice() {
  return invalid(kChoice, R"(chat.tool_choice_json must be "auto", "none", "required" or )"
                          R"({"type": "function", "function": {"name": …}}.)");
}

Result<ToolChoice> read_choice(std::string_view text) {
  using Kind = ToolChoice::Kind;
  if (text.empty()) return ToolChoice{};
  const auto value = parse(text, kChoice, kMaxChoiceBytes);
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
                    "chat.tool_choice_json names \"" + printable_line(choice.name, kMaxNameBytes) +
                        "\", which is none of the tools in chat.tools_json.",
                    std::move(extras)));
}

}  // namespace

Result<ChatTools> check_chat_tools(const v1::ChatInput& chat) {
  ChatTools tools;
  if (!chat.tools_json().empty()) {
    if (auto read = read_names(chat.tools_json(), tools.names); !read) return fail(read.error());
  }
  auto choice = read_choice(chat.tool_choice_json());
  if (!choice) return fail(choice.error());
  tools.choice = std::move(*choice);
  if (tools.choice.is_forced()) {
    if (tools.names.empty()) {
      return invalid(kChoice,
                     "chat.tool_choice_json wants a call of a tool, but there are none. Add "
                     "chat.tools_json, or leave chat.tool_choice_json out.");
    }
    const auto& name = tools.choice.name;
    if (tools.choice.kind == ToolChoice::Kind::kNamed &&
        std::find(tools.names.begin(), tools.names.end(), name) == tools.names.end()) {
      return unknown_tool(tools.choice, tools.names);
    }
  }
  if (tools.choice.kind == ToolChoice::Kind::kNone) tools.names.clear();
  return tools;
}

}  // namespace berth::worker
