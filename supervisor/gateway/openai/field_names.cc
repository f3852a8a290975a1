#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "supervisor/gateway/openai/requests.h"

namespace berth::gateway::openai {
namespace {

struct Name {
  std::string_view ours;
  std::string_view theirs;
};
// Longer ones first where one is a part of another.
constexpr std::array kNames{
    Name{"chat.messages_json", "messages"},
    Name{"chat.tools_json", "tools"},
    Name{"chat.tool_choice_json", "tool_choice"},
    Name{"chat.template_variables_json", "chat_template_kwargs"},
    Name{"format.json_schema", "response_format.json_schema.schema"},
    Name{"format.json_object", "response_format"},
    Name{"format.grammar", "grammar"},
    Name{"].tokens.ids", "]"},
    Name{"inputs[", "input["},
    Name{"tokens.ids", "prompt"},
    Name{"sampling.", ""},
};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// "messages[1].content[0]" at the front of a message about the messages; empty: it says no place.
std::string place_in(const std::string& message, const std::string& list) {
  if (!message.starts_with(list + "[")) return {};
  std::string place = message.substr(0, message.find_first_of(" :,"));
  while (place.ends_with('.')) place.pop_back();
  return place;
}

}  // namespace

Error with_openai_names(const Error& error) {
  if (!error.extras || error.extras->param.empty()) return error;
  Error renamed = error;
  ErrorExtras extras = *error.extras;
  for (const Name& name : kNames) {
    replace_all(renamed.message, name.ours, name.theirs);
    replace_all(extras.param, name.ours, name.theirs);
  }
  if (extras.param == "format") extras.param = "response_format";
  if (extras.param == "inputs") extras.param = "input";
  for (const char* list : {"messages", "tools"}) {
    if (extras.param != list) continue;
    if (std::string place = place_in(renamed.message, list); !place.empty()) extras.param = place;
  }
  renamed.extras = std::make_shared<const ErrorExtras>(std::move(extras));
  return renamed;
}

}  // namespace berth::gateway::openai
