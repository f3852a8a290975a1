#include "worker/template/chat_template.h"

#include <exception>
#include <minja/chat-template.hpp>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "common/text.h"
#include "worker/template/template_guard.h"

namespace berth::worker {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMessageBytes = 300;
constexpr std::string_view kMessagesParam = "chat.messages_json";
constexpr std::string_view kToolsParam = "chat.tools_json";

tl::unexpected<Error> invalid(std::string_view param, std::string message) {
  ErrorExtras extras;
  extras.param = param;
  return fail(Error(Reason::kInvalidArgument, std::move(message), std::move(extras)));
}

tl::unexpected<Error> template_failed(std::string_view what) {
  return fail(Reason::kTemplateFailed,
              "The model's chat template failed: " + printable_line(what, kMessageBytes));
}

// Looks at a text of JSON before it takes memory: whether it is well-formed, how deep it is nested
// and how many elements its outermost array has. (With a callback, Json::parse would take quadratic
// time.)
class Survey final : public nlohmann::json_sax<Json> {
 public:
  [[nodiscard]] bool too_deep() const { return depth_ > ChatTemplate::kMaxDepth; }
  [[nodiscard]] std::size_t elements() const { return elements_; }
  [[nodiscard]] const std::string& problem() const { return problem_; }  // empty: well-formed

  bool null() override { return value(); }
  bool boolean(bool /*value*/) override { return value(); }
  bool number_integer(number_integer_t /*value*/) override { return value(); }
  bool number_unsigned(number_unsigned_t /*value*/) override { return value(); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return value(); }
  bool string(string_t& /*value*/) override { return value(); }
  bool binary(binary_t& /*value*/) override { return value(); }
  bool key(string_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*elements*/) override { return begin(); }
  bool start_array(std::size_t /*elements*/) override { return begin(); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& problem) override {
    problem_ = problem.what();
    return false;
  }

 private:
  bool value() {
    if (depth_ == 1) ++elements_;
    return true;
  }
  bool begin() {
    value();
    ++depth_;
    return !too_deep();
  }
  bool end() {
    --depth_;
    return true;
  }

  int depth_ = 0;
  std::size_t elements_ = 0;
  std::string problem_;
};

// Parses an array. Deep nesting is refused, because values are copied recursively later.
Result<Json> parse_array(std::string_view text, std::string_view param, std::string_view what) {
  if (text.size() > ChatTemplate::kMaxInputBytes) {
    return invalid(param, std::string(what) + " have " + std::to_string(text.size()) +
                              " bytes; at most " + std::to_string(ChatTemplate::kMaxInputBytes) +
                              " (16 MiB) are allowed.");
  }
  Survey survey;
  Json array;
  try {
    if (Json::sax_parse(text.begin(), text.end(), &survey) &&
        survey.elements() <= ChatTemplate::kMaxElements) {
      array = Json::parse(text.begin(), text.end());
    }
  } catch (const std::exception& problem) {
    return invalid(param, std::string(what) + " are not valid JSON: " +
                              printable_line(problem.what(), kMessageBytes));
  }
  if (survey.too_deep()) {
    return invalid(param, std::string(what) + " are nested deeper than " +
                              std::to_string(ChatTemplate::kMaxDepth) + " levels.");
  }
  if (!survey.problem().empty()) {
    return invalid(param, std::string(what) + " are not valid JSON: " +
                              printable_line(survey.problem(), kMessageBytes));
  }
  if (survey.elements() > ChatTemplate::kMaxElements) {
    return invalid(param, std::string(what) + " are " + std::to_string(survey.elements()) +
                              "; at most " + std::to_string(ChatTemplate::kMaxElements) +
                              " are allowed.");
  }
  if (!array.is_array()) {
    return invalid(param, std::string(what) + " must be a JSON array, not " +
                              std::string(array.type_name()) + ".");
  }
  return array;
}

// Content that is an array of text parts becomes one text.
Status flatten_content(Json& message, const std::string& where) {
  auto& content = message["content"];
  std::string text;
  for (std::size_t part = 0; part < content.size(); ++part) {
    const auto& one = content[part];
    const auto here = where + ".content[" + std::to_string(part) + "]";
    if (!one.is_object()) {
      return invalid(kMessagesParam,
                     here + " must be an object, not " + std::string(one.type_name()) + ".");
    }
    const auto type = one.find("type");
    if (type == one.end() || *type != "text") {
      return invalid(kMessagesParam, here + " is not a text part; only text can be read.");
    }
    const auto value = one.find("text");
    if (value == one.end() || !value->is_string()) {
      return invalid(kMessagesParam, here + ".text must be a string.");
    }
    text += value->get_ref<const std::string&>();
  }
  content = std::move(text);
  return {};
}

Status check_message(Json& message, std::size_t index) {
  const auto where = "messages[" + std::to_string(index) + "]";
  if (!message.is_object()) {
    return invalid(kMessagesParam,
                   where + " must be an object, not " + std::string(message.type_name()) + ".");
  }
  const auto role = message.find("role");
  if (role == message.end()) return invalid(kMessagesParam, where + " has no role.");
  if (!role->is_string() || role->get_ref<const std::string&>().empty()) {
    return invalid(kMessagesParam, where + ".role must be a string such as \"user\".");
  }
  const auto content = message.find("content");
  const auto calls = message.find("tool_calls");
  const bool has_calls = calls != message.end() && calls->is_array() && !calls->empty();
  if (calls != message.end() && !calls->is_null() && !calls->is_array()) {
    return invalid(kMessagesParam, where + ".tool_calls must be an array.");
  }
  if (content == message.end() || content->is_null()) {
    if (!has_calls) return invalid(kMessagesParam, where + " has no content.");
    message["content"] = nullptr;
    return {};
  }
  if (content->is_array()) return flatten_content(message, where);
  if (!content->is_string()) {
    return invalid(kMessagesParam, where + ".content must be a string or an array of parts, not " +
                                       std::string(content->type_name()) + ".");
  }
  return {};
}

}  // namespace

struct ChatTemplate::Impl {
  minja::chat_template parsed;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(const std::string& source, const std::string& bos,
                                         const std::string& eos) {
  const auto guarded = guard_template(source);
  if (!guarded) return fail(guarded.error());
  try {
    return ChatTemplate(std::make_unique<Impl>(Impl{minja::chat_template(*guarded, bos, eos)}));
  } catch (const std::exception& problem) {
    return template_failed(problem.what());
  } catch (...) {
    return template_failed("unknown exception");
  }
}

Result<std::string> ChatTemplate::render(std::string_view messages_json,
                                         std::string_view tools_json,
                                         bool add_generation_prompt) const {
  auto messages = parse_array(messages_json, kMessagesParam, "The messages");
  if (!messages) return fail(messages.error());
  if (messages->empty()) return invalid(kMessagesParam, "The array of messages is empty.");
  for (std::size_t index = 0; index < messages->size(); ++index) {
    if (auto checked = check_message((*messages)[index], index); !checked) {
      return fail(checked.error());
    }
  }
  try {
    minja::chat_template_inputs inputs;
    inputs.messages = std::move(*messages);
    inputs.add_generation_prompt = add_generation_prompt;
    if (!tools_json.empty()) {
      auto tools = parse_array(tools_json, kToolsParam, "The tools");
      if (!tools) return fail(tools.error());
      if (!tools->empty()) inputs.tools = std::move(*tools);
    }
    auto text = impl_->parsed.apply(inputs);
    if (text.size() > kMaxOutputBytes) {
      return fail(Reason::kTemplateFailed,
                  "The model's chat template made a prompt of more than 16 MiB.");
    }
    return text;
  } catch (const std::exception& problem) {
    return template_failed(problem.what());
  } catch (...) {
    return template_failed("unknown exception");
  }
}

}  // namespace berth::worker
