#include "supervisor/gateway/openai/requests.h"

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "supervisor/gateway/openai/fields.h"
#include "supervisor/gateway/openai/json_body.h"
#include "supervisor/gateway/openai/text_fields.h"
#include "supervisor/gateway/validate.h"

namespace berth::gateway::openai {
namespace {

namespace json = boost::json;

// chat_template_kwargs, and what reasoning_effort means to templates: gpt-oss's reads it by that
// name, those of Qwen and others only know whether to think.
void read_variables(const Fields& body, core::ChatInput& chat) {
  json::object variables;
  if (body.object("chat_template_kwargs")) {
    variables = body.find("chat_template_kwargs")->get_object();
  }
  if (const std::optional<std::string> effort = body.text("reasoning_effort")) {
    // A name of the client's own counts more.
    variables.emplace("reasoning_effort", *effort);
    if (*effort == "none") variables.emplace("enable_thinking", false);
  }
  if (!variables.empty()) chat.template_variables_json = json::serialize(variables);
}

void read_chat_logprobs(const Fields& body, std::optional<std::uint32_t>& to) {
  const bool wanted = body.flag("logprobs").value_or(false);
  const std::optional<std::int64_t> top = body.whole("top_logprobs", 0, kMaxTopLogprobs);
  if (wanted) {
    to = static_cast<std::uint32_t>(top.value_or(0));
  } else if (top.value_or(0) > 0) {
    body.refuse("top_logprobs", "top_logprobs needs logprobs to be true.");
  }
}

// What would be an answer in another form than text.
void refuse_sound(const Fields& body) {
  if (body.find("audio") != nullptr) body.refuse("audio", "audio is not supported.");
  const json::array* modalities = body.list("modalities");
  if (modalities == nullptr) return;
  for (const json::value& modality : *modalities) {
    const json::string* name = modality.if_string();
    if (name == nullptr || *name != "text") {
      return body.refuse_value("modalities", R"(["text"])", modality);
    }
  }
}

// A text, a list of one text, the ids of tokens, or a list of one such list.
void read_prompt(const Fields& body, core::GenerateRequest& to) {
  const json::value* value = body.find("prompt");
  if (value == nullptr) return body.refuse("prompt", "prompt is missing.");
  std::string path = "prompt";
  const json::array* list = value->if_array();
  if (list != nullptr && !list->empty() && !list->front().is_number()) {
    if (list->size() > 1) {
      return body.refuse("prompt", "prompt has " + std::to_string(list->size()) +
                                       " prompts. Send a request for each.");
    }
    path += "[0]";
    value = &list->front();
    list = value->if_array();
  }
  if (const json::string* text = value->if_string()) {
    to.input = core::PromptInput{{text->data(), text->size()}};
  } else if (list == nullptr) {
    body.refuse_value(path, "a text or a list of the ids of tokens", *value);
  } else if (list->empty()) {
    body.refuse(path, path + " is empty.");
  } else {
    to.input = core::TokenInput{read_token_ids(*list, path, body.errors())};
  }
}

void refuse_unsupported_completion(const Fields& body) {
  if (body.flag("echo").value_or(false)) {
    body.refuse("echo", "echo is not supported: the prompt is never part of the answer.");
  }
  if (!body.text("suffix").value_or("").empty()) {
    body.refuse("suffix", "suffix is not supported: text is only written behind the prompt.");
  }
  const json::value* best = body.find("best_of");
  if (best != nullptr && as_whole(*best) != 1) {
    body.refuse_value("best_of", "1, since one answer is made for each request", *best);
  }
}

// The worker refuses it, too, but only once it is loaded.
void refuse_format_beside_tools(const Fields& body, const core::ChatInput& chat,
                                const core::OutputFormat& format) {
  if (std::holds_alternative<std::monostate>(format) || chat.tools_json.empty()) return;
  if (chat.tool_choice_json == R"("none")") return;
  body.refuse(body.find("response_format") == nullptr ? "grammar" : "response_format",
              "A format and tools cannot shape the same answer. Leave one of them out, or set "
              "tool_choice to \"none\".");
}

// What the readers did not look at. Their own names are OpenAI's already.
Result<TextRequest> checked(TextRequest request, const FirstError& errors) {
  if (Status ok = errors.status(); !ok) return fail(ok.error());
  if (Status ok = validate(request.generate); !ok) return fail(with_openai_names(ok.error()));
  return request;
}

}  // namespace

Result<std::string> read_model(const json::object& body) {
  FirstError errors;
  std::string model;
  std::string user;
  const json::value* value = body.if_contains("model");
  json::object only;
  if (value != nullptr) only.emplace("model", *value);
  read_names(Fields(only, "", errors), model, user);
  if (Status ok = errors.status(); !ok) return fail(ok.error());
  return model;
}

Result<TextRequest> read_chat_request(const json::object& object) {
  FirstError errors;
  const Fields body(object, "", errors);
  TextRequest request;
  core::ChatInput chat;
  read_names(body, request.generate.model, request.generate.user);
  read_messages(body, chat);
  read_tools(body, request, chat);
  read_bounds(body, "max_completion_tokens", request);
  read_sampling(body, request.generate.sampling);
  read_format(body, request.generate.format);
  refuse_format_beside_tools(body, chat, request.generate.format);
  read_chat_logprobs(body, request.generate.top_logprobs);
  read_variables(body, chat);
  chat.add_generation_prompt = body.flag("add_generation_prompt").value_or(true);
  refuse_sound(body);
  request.generate.input = std::move(chat);
  return checked(std::move(request), errors);
}

Result<TextRequest> read_completion_request(const json::object& object) {
  FirstError errors;
  const Fields body(object, "", errors);
  TextRequest request;
  read_names(body, request.generate.model, request.generate.user);
  read_prompt(body, request.generate);
  read_bounds(body, "max_tokens", request);
  read_sampling(body, request.generate.sampling);
  read_format(body, request.generate.format);
  if (const auto top = body.whole("logprobs", 0, kMaxTopLogprobs)) {
    request.generate.top_logprobs = static_cast<std::uint32_t>(*top);
  }
  refuse_unsupported_completion(body);
  return checked(std::move(request), errors);
}

}  // namespace berth::gateway::openai
