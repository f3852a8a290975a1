#include "supervisor/rpc/command_body.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/string_view.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "common/json_text.h"
#include "supervisor/rpc/json_piece.h"

namespace berth::rpc {
namespace {

constexpr float kBan = -100;

std::string quoted(std::string_view text) {
  return boost::json::serialize(boost::json::string_view(text.data(), text.size()));
}

std::string number(float value) {
  std::string text;
  append_json_number(text, value);
  return text;
}
std::string number(bool value) {
  return value ? "true" : "false";
}
template <typename Integer>
std::string number(Integer value) {
  return std::to_string(value);
}

template <typename List, typename Text>
std::string list_of(const List& list, Text text) {
  std::string out = "[";
  for (const auto& item : list) {
    if (out.size() > 1) out += ',';
    out += text(item);
  }
  return out + "]";
}

// Members of the one object, behind its first.
class Members {
 public:
  void add(std::string_view name, std::string_view json) {
    text_ += ",\"";
    text_ += name;
    text_ += "\":";
    text_ += json;
  }
  template <typename Value>
  void add_number(std::string_view name, const std::optional<Value>& value) {
    if (value) add(name, number(*value));
  }
  // JSON that a client wrote. Errors: of check_json().
  Status add_checked(std::string_view name, std::string_view json, std::string_view field,
                     JsonKind kind) {
    if (Status valid = check_json(json, field, kind); !valid) return valid;
    add(name, json);
    return {};
  }
  // The same, where it was given.
  Status add_given(std::string_view name, std::string_view json, std::string_view field,
                   JsonKind kind) {
    return json.empty() ? Status() : add_checked(name, json, field, kind);
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void add_sampling(const core::Sampling& sampling, Members& members) {
  members.add_number("temperature", sampling.temperature);
  members.add_number("top_k", sampling.top_k);
  members.add_number("top_p", sampling.top_p);
  members.add_number("seed", sampling.seed);
  members.add_number("min_p", sampling.min_p);
  members.add_number("typical_p", sampling.typical_p);
  members.add_number("top_n_sigma", sampling.top_n_sigma);
  members.add_number("xtc_probability", sampling.xtc_probability);
  members.add_number("xtc_threshold", sampling.xtc_threshold);
  members.add_number("dynatemp_range", sampling.dynamic_temperature_range);
  members.add_number("dynatemp_exponent", sampling.dynamic_temperature_exponent);
  members.add_number("repeat_last_n", sampling.penalty_last_tokens);
  members.add_number("repeat_penalty", sampling.repetition_penalty);
  members.add_number("repetition_penalty", sampling.repetition_penalty);
  members.add_number("presence_penalty", sampling.presence_penalty);
  members.add_number("frequency_penalty", sampling.frequency_penalty);
  members.add_number("dry_multiplier", sampling.dry_multiplier);
  members.add_number("dry_base", sampling.dry_base);
  members.add_number("dry_allowed_length", sampling.dry_allowed_length);
  members.add_number("dry_penalty_last_n", sampling.dry_last_tokens);
  members.add_number("mirostat", sampling.mirostat);
  members.add_number("mirostat_tau", sampling.mirostat_tau);
  members.add_number("mirostat_eta", sampling.mirostat_eta);
  members.add_number("ignore_eos", sampling.ignore_eos);
  if (!sampling.dry_breakers.empty()) {
    members.add("dry_sequence_breakers", list_of(sampling.dry_breakers, quoted));
  }
  if (sampling.logit_bias.empty()) return;
  std::string biases = "{";
  for (const core::LogitBias& bias : sampling.logit_bias) {
    if (biases.size() > 1) biases += ',';
    biases += quoted(std::to_string(bias.token)) + ":" + number(std::max(bias.bias, kBan));
  }
  members.add("logit_bias", biases + "}");
}

Status add_format(const core::OutputFormat& format, Members& members) {
  if (std::holds_alternative<core::JsonObjectFormat>(format)) {
    members.add("response_format", R"({"type":"json_object"})");
  } else if (const auto* schema = std::get_if<core::JsonSchemaFormat>(&format)) {
    if (Status valid = check_json(schema->schema, "format.json_schema", JsonKind::kSchema);
        !valid) {
      return valid;
    }
    members.add("response_format",
                R"({"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":)" +
                    schema->schema + "}}");
  } else if (std::holds_alternative<core::GrammarFormat>(format)) {
    return invalid_argument("format",
                            "The model is a program of its own (kind = \"command\"), which takes "
                            "no grammar in GBNF. Ask for a JSON schema.");
  }
  return {};
}

Status add_chat(const core::ChatInput& chat, Members& members) {
  if (chat.raw_answer) {
    return invalid_argument("chat.raw_answer",
                            "The model is a program of its own (kind = \"command\"), which "
                            "takes its answers apart itself: no raw ones can be had of it.");
  }
  Status added =
      members.add_checked("messages", chat.messages_json, "chat.messages_json", JsonKind::kArray);
  if (added) {
    added = members.add_given("tools", chat.tools_json, "chat.tools_json", JsonKind::kArray);
  }
  if (added) {
    added = members.add_given("tool_choice", chat.tool_choice_json, "chat.tool_choice_json",
                              JsonKind::kTextOrObject);
  }
  if (added) {
    added = members.add_given("chat_template_kwargs", chat.template_variables_json,
                              "chat.template_variables_json", JsonKind::kObject);
  }
  if (!chat.add_generation_prompt) members.add("add_generation_prompt", "false");
  return added;
}

Status add_input(const core::GenerateRequest& request, Members& members) {
  if (const auto* prompt = std::get_if<core::PromptInput>(&request.input)) {
    members.add("prompt", quoted(prompt->text));
  } else if (const auto* tokens = std::get_if<core::TokenInput>(&request.input)) {
    members.add("prompt", list_of(tokens->ids, [](std::int32_t id) { return number(id); }));
  } else {
    return add_chat(std::get<core::ChatInput>(request.input), members);
  }
  return {};
}

}  // namespace

Result<ForwardRequest> generation_body(const core::GenerateRequest& request) {
  Members members;
  if (const Status added = add_input(request, members); !added) return fail(added.error());
  if (const Status added = add_format(request.format, members); !added) return fail(added.error());
  if (request.top_logprobs) {
    return invalid_argument("top_logprobs",
                            "The model is a program of its own (kind = \"command\"), which does "
                            "not say its tokens' ids: ask for logprobs over HTTP.");
  }
  add_sampling(request.sampling, members);
  members.add_number("max_tokens", request.max_tokens);
  if (!request.stop.empty()) members.add("stop", list_of(request.stop, quoted));
  if (!request.user.empty()) members.add("user", quoted(request.user));
  members.add("stream", "true");
  members.add("stream_options", R"({"include_usage":true})");

  ForwardRequest made;
  const bool chat = std::holds_alternative<core::ChatInput>(request.input);
  made.path = chat ? "/v1/chat/completions" : "/v1/completions";
  made.body = {"{\"model\":", members.take() + "}"};
  return made;
}

}  // namespace berth::rpc
