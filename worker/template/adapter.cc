#include "worker/template/adapter.h"

#include <cstdint>
#include <utility>

#include "worker/template/json_writer.h"

namespace berth::worker {
namespace {

// Nine letters and digits that depend on all of `id` (FNV-1a).
std::string short_id(const std::string& id) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  std::string text;
  while (text.size() < 9) {
    text.push_back(kAlphabet[hash % kAlphabet.size()]);
    hash /= kAlphabet.size();
  }
  return text;
}

bool is_short_id(const std::string& id) {
  for (const char c : id) {
    const bool fits = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!fits) return false;
  }
  return id.size() == 9;
}

void shorten(Json& holder, const char* key) {
  const auto id = holder.find(key);
  if (id == holder.end() || !id->is_string()) {
    if (std::string_view(key) == "id") holder["id"] = short_id(holder.dump());
    return;
  }
  const auto& text = id->get_ref<const std::string&>();
  if (!is_short_id(text)) *id = short_id(text);
}

// The form that is asked for where a template has none of its own.
std::string call_text(const Json& call) {
  Json one = Json::object();
  one["name"] = call["function"]["name"];
  one["arguments"] = call["function"]["arguments"];
  return one.dump();
}

std::string tools_text(const Json& tools) {
  return "You can use these tools:\n" + tools.dump(2) +
         "\n\nTo use one, answer with nothing but a JSON object of this form:\n"
         R"({"name": "the tool's name", "arguments": {"argument": "value"}})";
}

void prepend(Json& message, const std::string& text) {
  auto& content = message["content"];
  const auto rest = content.is_string() ? content.get<std::string>() : std::string();
  content = rest.empty() ? text : text + "\n\n" + rest;
}

bool has_role(const Json& messages, std::string_view role) {
  for (const auto& one : messages) {
    if (one["role"] == role) return true;
  }
  return false;
}

bool has_calls(const Json& messages) {
  for (const auto& one : messages) {
    if (one.contains("tool_calls")) return true;
  }
  return false;
}

}  // namespace

void Adapter::adapt(Conversation& conversation) {
  auto& messages = conversation.messages;
  if (!conversation.tools.is_null() && !trials_.knows_tools()) adapt_tools(conversation);
  // Past calls look like those that are asked for: models repeat what they see.
  const bool as_text =
      conversation.tools_described || (has_calls(messages) && !trials_.knows_calls());
  if (has_calls(messages)) {
    for (auto& one : messages) adapt_calls(one, as_text);
  }
  if (has_role(messages, "tool")) {
    const bool results = !as_text && trials_.knows_results();
    for (auto& one : messages) {
      if (one["role"] != "tool") continue;
      if (results) {
        if (trials_.wants_short_ids()) shorten(one, "tool_call_id");
        continue;
      }
      Json result = Json::object();
      if (one.contains("name")) result["name"] = one["name"];
      result["result"] = one["content"];
      one = make_message("user", result.dump());
    }
  }
  if (has_role(messages, "system") && !trials_.knows_system()) adapt_system(messages);
  if (!trials_.wants_parts()) return;
  for (auto& one : messages) {
    if (one["content"].is_string()) one["content"] = content_parts(std::move(one["content"]));
  }
}

void Adapter::adapt_tools(Conversation& conversation) {
  auto& messages = conversation.messages;
  const auto text = tools_text(conversation.tools);
  conversation.tools = nullptr;
  conversation.tools_described = true;
  if (messages[0]["role"] == "system") {
    auto& content = messages[0]["content"];
    content = (content.is_string() ? content.get<std::string>() : "") + "\n\n" + text;
    return;
  }
  messages.insert(messages.begin(), make_message("system", text));
}

void Adapter::adapt_calls(Json& one, bool as_text) {
  const auto found = one.find("tool_calls");
  if (found == one.end()) return;
  if (as_text) {
    std::string text;
    for (const auto& each : *found) text += (text.empty() ? "" : "\n") + call_text(each);
    const auto& content = one["content"];
    const auto before = content.is_string() ? content.get<std::string>() : std::string();
    one.erase("tool_calls");
    one["content"] = before.empty() ? text : before + "\n" + text;
    return;
  }
  auto& content = one["content"];
  if (content.is_null() && !trials_.takes_no_content()) content = "";
  const bool empty = content.is_string() && content.get_ref<const std::string&>().empty();
  if (empty && trials_.wants_no_content()) content = nullptr;
  const bool short_ids = trials_.wants_short_ids();
  for (auto& each : one["tool_calls"]) {
    adapt_arguments(each["function"]);
    if (short_ids) shorten(each, "id");
  }
}

void Adapter::adapt_arguments(Json& function) {
  auto text = function.value(kArgumentsText, Json());
  function.erase(kArgumentsText);
  auto& arguments = function["arguments"];
  if (trials_.form_of_arguments() == TemplateTrials::Form::kObject || !arguments.is_object())
    return;
  if (text.is_null()) text = to_json(minja::Value(arguments), JsonStyle());
  arguments = std::move(text);
}

// What the system says goes in front of what the user says next; without such a message it becomes
// one.
void Adapter::adapt_system(Json& messages) {
  Json adapted = Json::array();
  std::string pending;
  for (auto& one : messages) {
    if (one["role"] == "system") {
      const auto& content = one["content"];
      if (content.is_string() && !content.get_ref<const std::string&>().empty()) {
        pending += (pending.empty() ? "" : "\n\n") + content.get<std::string>();
      }
      continue;
    }
    if (!pending.empty() && one["role"] == "user") {
      prepend(one, pending);
      pending.clear();
    }
    adapted.push_back(std::move(one));
  }
  if (!pending.empty()) adapted.push_back(make_message("user", pending));
  messages = std::move(adapted);
}

}  // namespace berth::worker
