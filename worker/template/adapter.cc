#include "worker/template/adapter.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "worker/template/json_writer.h"

namespace berth::worker {
namespace {

// Words that stand in no template.
constexpr const char* kUserNeedle = "Qz7user";
constexpr const char* kSystemNeedle = "Qz7system";
constexpr const char* kResultNeedle = "Qz7result";
constexpr const char* kToolNeedle = "qz7tool";
constexpr const char* kArgumentNeedle = "qz7argument";
constexpr const char* kShortId = "Qz7abcde1";
constexpr const char* kLongId = "call_Qz7abcdefghij1234567";

Json message(const char* role, Json content) {
  Json one = Json::object();
  one["role"] = role;
  one["content"] = std::move(content);
  return one;
}

Json call(Json arguments, const char* id) {
  Json function = Json::object();
  function["name"] = kToolNeedle;
  function["arguments"] = std::move(arguments);
  Json one = Json::object();
  one["id"] = id;
  one["type"] = "function";
  one["function"] = std::move(function);
  return one;
}

Json calls(Json content, Json arguments, const char* id = kShortId) {
  auto one = message("assistant", std::move(content));
  one["tool_calls"] = Json::array({call(std::move(arguments), id)});
  return one;
}

Json trial_arguments() {
  Json arguments = Json::object();
  arguments[kArgumentNeedle] = "a";
  return arguments;
}

Json trial_tools() {
  Json parameter = Json::object();
  parameter["type"] = "string";
  parameter["description"] = "An argument.";
  Json parameters = Json::object();
  parameters["type"] = "object";
  parameters["properties"] = Json::object();
  parameters["properties"][kArgumentNeedle] = std::move(parameter);
  parameters["required"] = Json::array({kArgumentNeedle});
  Json function = Json::object();
  function["name"] = kToolNeedle;
  function["description"] = "A tool.";
  function["parameters"] = std::move(parameters);
  Json tool = Json::object();
  tool["type"] = "function";
  tool["function"] = std::move(function);
  return Json::array({std::move(tool)});
}

Json parts_of(Json text) {
  Json part = Json::object();
  part["type"] = "text";
  part["text"] = std::move(text);
  return Json::array({std::move(part)});
}

bool contains(std::string_view text, std::string_view what) {
  return text.find(what) != std::string_view::npos;
}

// How well arguments came out: 2 as JSON or in a form of the template's own, 1 with Python's
// quotes, 0 with their quotes escaped, or not at all.
int quality(std::string_view out) {
  const std::string needle = kArgumentNeedle;
  if (!contains(out, needle) || contains(out, "\\\"" + needle)) return 0;
  return contains(out, "'" + needle + "'") ? 1 : 2;
}

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

bool Adapter::ask(Answer& answer, const std::function<bool()>& trial) {
  if (!answer) answer = trial();
  return *answer;
}

std::string Adapter::rendered(const Json& messages, const Json& tools) const {
  return render_(messages, tools).value_or("");
}

bool Adapter::shows(const Json& messages, std::string_view needle, const Json& tools) const {
  return contains(rendered(messages, tools), needle);
}

bool Adapter::wants_parts() {
  return ask(wants_parts_, [this] {
    return !shows(Json::array({message("user", kUserNeedle)}), kUserNeedle) &&
           shows(Json::array({message("user", parts_of(kUserNeedle))}), kUserNeedle);
  });
}

bool Adapter::knows_system() {
  return ask(knows_system_, [this] {
    const auto text = [this](const char* needle) {
      return wants_parts() ? parts_of(needle) : Json(needle);
    };
    return shows(
        Json::array({message("system", text(kSystemNeedle)), message("user", text(kUserNeedle))}),
        kSystemNeedle);
  });
}

bool Adapter::knows_tools() {
  return ask(knows_tools_, [this] {
    return shows(Json::array({message("user", kUserNeedle)}), kToolNeedle, trial_tools());
  });
}

Adapter::Form Adapter::form_of_arguments() {
  if (!form_) {
    const auto tried = [this](const Json& arguments) {
      const auto user = message("user", kUserNeedle);
      const auto out = rendered(Json::array({user, calls(nullptr, arguments)}));
      return contains(out, kToolNeedle) ? out : rendered(Json::array({user, calls("", arguments)}));
    };
    const auto object = tried(trial_arguments());
    const auto text = tried(trial_arguments().dump());
    if (!contains(object, kToolNeedle) && !contains(text, kToolNeedle)) {
      form_ = std::optional<Form>();
    } else {
      form_ = quality(text) > quality(object) ? Form::kText : Form::kObject;
    }
  }
  return form_->value_or(Form::kObject);
}

bool Adapter::knows_calls() {
  form_of_arguments();
  return form_->has_value();
}

bool Adapter::takes_no_content() {
  return ask(takes_no_content_, [this] {
    const auto out =
        rendered(Json::array({message("user", kUserNeedle), calls(nullptr, trial_arguments())}));
    return contains(out, kToolNeedle) && !contains(out, "None");
  });
}

// DeepSeek's: a message with any content, be it empty, is no call to it.
bool Adapter::wants_no_content() {
  return ask(wants_no_content_, [this] {
    auto arguments = trial_arguments();
    if (form_of_arguments() == Form::kText) arguments = arguments.dump();
    const auto user = message("user", kUserNeedle);
    return !shows(Json::array({user, calls("", arguments)}), kToolNeedle) &&
           shows(Json::array({user, calls(nullptr, arguments)}), kToolNeedle);
  });
}

bool Adapter::wants_short_ids() {
  return ask(wants_short_ids_, [this] {
    const auto tried = [this](const char* id) {
      return Json::array({message("user", kUserNeedle),
                          calls(takes_no_content() ? Json() : Json(""), trial_arguments(), id)});
    };
    return !shows(tried(kLongId), kToolNeedle) && shows(tried(kShortId), kToolNeedle);
  });
}

bool Adapter::knows_results() {
  return ask(knows_results_, [this] {
    if (!knows_calls()) return false;
    auto result = message("tool", kResultNeedle);
    result["name"] = kToolNeedle;
    result["tool_call_id"] = kShortId;
    auto arguments = trial_arguments();
    if (form_of_arguments() == Form::kText) arguments = arguments.dump();
    const auto content = takes_no_content() ? Json() : Json("");
    return shows(
        Json::array({message("user", kUserNeedle), calls(content, std::move(arguments)), result}),
        kResultNeedle);
  });
}

void Adapter::adapt(Conversation& conversation) {
  auto& messages = conversation.messages;
  if (!conversation.tools.is_null() && !knows_tools()) adapt_tools(conversation);
  // Past calls look like those that are asked for: models repeat what they see.
  const bool as_text = conversation.tools_described || (has_calls(messages) && !knows_calls());
  if (has_calls(messages)) {
    for (auto& one : messages) adapt_calls(one, as_text);
  }
  if (has_role(messages, "tool")) {
    const bool results = !as_text && knows_results();
    for (auto& one : messages) {
      if (one["role"] != "tool") continue;
      if (results) {
        if (wants_short_ids()) shorten(one, "tool_call_id");
        continue;
      }
      Json result = Json::object();
      if (one.contains("name")) result["name"] = one["name"];
      result["result"] = one["content"];
      one = message("user", result.dump());
    }
  }
  if (has_role(messages, "system") && !knows_system()) adapt_system(messages);
  if (!wants_parts()) return;
  for (auto& one : messages) {
    if (one["content"].is_string()) one["content"] = parts_of(std::move(one["content"]));
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
  messages.insert(messages.begin(), message("system", text));
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
  if (content.is_null() && !takes_no_content()) content = "";
  const bool empty = content.is_string() && content.get_ref<const std::string&>().empty();
  if (empty && wants_no_content()) content = nullptr;
  const bool short_ids = wants_short_ids();
  for (auto& each : one["tool_calls"]) {
    adapt_arguments(each["function"]);
    if (short_ids) shorten(each, "id");
  }
}

void Adapter::adapt_arguments(Json& function) {
  auto text = function.value(kArgumentsText, Json());
  function.erase(kArgumentsText);
  auto& arguments = function["arguments"];
  if (form_of_arguments() == Form::kObject || !arguments.is_object()) return;
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
  if (!pending.empty()) adapted.push_back(message("user", pending));
  messages = std::move(adapted);
}

}  // namespace berth::worker
