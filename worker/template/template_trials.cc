#include "worker/template/template_trials.h"

#include <utility>

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
  auto one = make_message("assistant", std::move(content));
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

}  // namespace

Json make_message(const char* role, Json content) {
  Json one = Json::object();
  one["role"] = role;
  one["content"] = std::move(content);
  return one;
}

Json content_parts(Json text) {
  Json part = Json::object();
  part["type"] = "text";
  part["text"] = std::move(text);
  return Json::array({std::move(part)});
}

bool TemplateTrials::ask(Answer& answer, const std::function<bool()>& trial) {
  if (!answer) answer = trial();
  return *answer;
}

std::string TemplateTrials::rendered(const Json& messages, const Json& tools) const {
  return render_(messages, tools).value_or("");
}

bool TemplateTrials::shows(const Json& messages, std::string_view needle, const Json& tools) const {
  return contains(rendered(messages, tools), needle);
}

bool TemplateTrials::wants_parts() {
  return ask(wants_parts_, [this] {
    return !shows(Json::array({make_message("user", kUserNeedle)}), kUserNeedle) &&
           shows(Json::array({make_message("user", content_parts(kUserNeedle))}), kUserNeedle);
  });
}

bool TemplateTrials::knows_system() {
  return ask(knows_system_, [this] {
    const auto text = [this](const char* needle) {
      return wants_parts() ? content_parts(needle) : Json(needle);
    };
    return shows(Json::array({make_message("system", text(kSystemNeedle)),
                              make_message("user", text(kUserNeedle))}),
                 kSystemNeedle);
  });
}

bool TemplateTrials::knows_tools() {
  return ask(knows_tools_, [this] {
    return shows(Json::array({make_message("user", kUserNeedle)}), kToolNeedle, trial_tools());
  });
}

TemplateTrials::Form TemplateTrials::form_of_arguments() {
  if (!form_) {
    const auto tried = [this](const Json& arguments) {
      const auto user = make_message("user", kUserNeedle);
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

bool TemplateTrials::knows_calls() {
  form_of_arguments();
  return form_->has_value();
}

bool TemplateTrials::takes_no_content() {
  return ask(takes_no_content_, [this] {
    const auto out = rendered(
        Json::array({make_message("user", kUserNeedle), calls(nullptr, trial_arguments())}));
    return contains(out, kToolNeedle) && !contains(out, "None");
  });
}

// DeepSeek's: a message with any content, be it empty, is no call to it.
bool TemplateTrials::wants_no_content() {
  return ask(wants_no_content_, [this] {
    auto arguments = trial_arguments();
    if (form_of_arguments() == Form::kText) arguments = arguments.dump();
    const auto user = make_message("user", kUserNeedle);
    return !shows(Json::array({user, calls("", arguments)}), kToolNeedle) &&
           shows(Json::array({user, calls(nullptr, arguments)}), kToolNeedle);
  });
}

bool TemplateTrials::wants_short_ids() {
  return ask(wants_short_ids_, [this] {
    const auto tried = [this](const char* id) {
      return Json::array({make_message("user", kUserNeedle),
                          calls(takes_no_content() ? Json() : Json(""), trial_arguments(), id)});
    };
    return !shows(tried(kLongId), kToolNeedle) && shows(tried(kShortId), kToolNeedle);
  });
}

bool TemplateTrials::knows_results() {
  return ask(knows_results_, [this] {
    if (!knows_calls()) return false;
    auto result = make_message("tool", kResultNeedle);
    result["name"] = kToolNeedle;
    result["tool_call_id"] = kShortId;
    auto arguments = trial_arguments();
    if (form_of_arguments() == Form::kText) arguments = arguments.dump();
    const auto content = takes_no_content() ? Json() : Json("");
    return shows(Json::array({make_message("user", kUserNeedle),
                              calls(content, std::move(arguments)), result}),
                 kResultNeedle);
  });
}

}  // namespace berth::worker
