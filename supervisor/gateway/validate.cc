#include "supervisor/gateway/validate.h"

#include <cmath>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "common/text.h"

namespace berth::gateway {
namespace {

Status validate_number(std::optional<float> value, std::string_view field, float low, bool open,
                       float high) {
  if (!value) return {};
  const bool above = open ? *value > low : *value >= low;
  if (std::isfinite(*value) && above && *value <= high) return {};
  return invalid_argument(field, std::string(field) + " is " + std::to_string(*value) +
                                     ", but must be " + (open ? "above " : "at least ") +
                                     std::to_string(low) + " and at most " + std::to_string(high) +
                                     ".");
}

Status validate_model_name(const std::string& model) {
  if (model.empty())
    return invalid_argument("model", "No model was named. `berth models` lists them.");
  if (model.size() > kMaxModelNameBytes) {
    return invalid_argument("model", "The model's name has " + std::to_string(model.size()) +
                                         " bytes, but at most 512 are allowed.");
  }
  return validate_utf8(model, "model");
}

Status validate_ids(const std::vector<std::int32_t>& ids, std::string_view field) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0) continue;
    return invalid_argument(field, "Token " + std::to_string(i) + " is " + std::to_string(ids[i]) +
                                       ", but ids are not negative.");
  }
  return {};
}

Status validate_id_count(std::size_t count, std::string_view field) {
  if (count <= kMaxPromptIds) return {};
  return invalid_argument(field, "There are " + std::to_string(count) +
                                     " tokens, but at most 1048576 are allowed at once.");
}

Status validate_text(const std::string& text, const std::string& field) {
  if (text.size() > kMaxTextBytes) {
    return invalid_argument(field, field + " has " + std::to_string(text.size()) +
                                       " bytes, but at most 4 MiB (4194304) are allowed.");
  }
  return validate_utf8(text, field);
}

struct EmbedInputCheck {
  const std::string& field;

  Status operator()(const core::PromptInput& prompt) const {
    if (prompt.text.empty()) return invalid_argument(field, field + " is empty.");
    return validate_text(prompt.text, field);
  }
  Status operator()(const core::TokenInput& tokens) const {
    if (tokens.ids.empty()) return invalid_argument(field, field + " is empty: it has no token.");
    return validate_ids(tokens.ids, field);
  }
};

struct InputCheck {
  Status operator()(const core::ChatInput& chat) const {
    if (chat.messages_json.empty()) {
      return invalid_argument("chat.messages_json",
                              "The chat has no messages: give a JSON array of them.");
    }
    if (Status ok = validate_utf8(chat.messages_json, "chat.messages_json"); !ok) return ok;
    if (Status ok = validate_utf8(chat.tools_json, "chat.tools_json"); !ok) return ok;
    if (Status ok = validate_utf8(chat.tool_choice_json, "chat.tool_choice_json"); !ok) return ok;
    return validate_utf8(chat.template_variables_json, "chat.template_variables_json");
  }
  Status operator()(const core::PromptInput& prompt) const {
    return validate_utf8(prompt.text, "prompt");
  }
  Status operator()(const core::TokenInput& tokens) const {
    if (tokens.ids.empty())
      return invalid_argument("tokens.ids", "The prompt has no tokens: give at least one.");
    if (Status ok = validate_id_count(tokens.ids.size(), "tokens.ids"); !ok) return ok;
    return validate_ids(tokens.ids, "tokens.ids");
  }
};

struct TokenizeInputCheck {
  Status operator()(const core::TextInput& text) const { return validate_text(text.text, "text"); }
  Status operator()(const core::ChatInput& chat) const { return InputCheck{}(chat); }
};

struct FormatCheck {
  Status operator()(std::monostate) const { return {}; }
  Status operator()(core::JsonObjectFormat) const { return {}; }
  Status operator()(const core::JsonSchemaFormat& format) const {
    return validate_utf8(format.schema, "format.json_schema");
  }
  Status operator()(const core::GrammarFormat& format) const {
    return validate_utf8(format.gbnf, "format.grammar");
  }
};

template <typename Value>
bool is_finite([[maybe_unused]] Value value) {
  if constexpr (std::is_floating_point_v<Value>) return std::isfinite(value);
  return true;
}

// The worker checks ranges; what is no number at all need not wake it.
Status validate_sampling(const core::Sampling& sampling) {
#define BERTH_SAMPLING_FIELD(type, name)                                                  \
  if (sampling.name && !is_finite(*sampling.name)) {                                      \
    return invalid_argument("sampling." #name, "sampling." #name                          \
                                               " must be a finite number, not " +         \
                                                   std::to_string(*sampling.name) + "."); \
  }
#include "supervisor/core/sampling_fields.def"
#undef BERTH_SAMPLING_FIELD
  if (sampling.logit_bias.size() > kMaxBiases) {
    return invalid_argument("sampling.logit_bias",
                            "There are " + std::to_string(sampling.logit_bias.size()) +
                                " entries in sampling.logit_bias; at most 4096 are allowed.");
  }
  for (const core::LogitBias& bias : sampling.logit_bias) {
    if (!std::isfinite(bias.bias)) {
      return invalid_argument("sampling.logit_bias", "The bias of token " +
                                                         std::to_string(bias.token) +
                                                         " must be a finite number, not " +
                                                         std::to_string(bias.bias) + ".");
    }
  }
  if (Status ok = validate_number(sampling.temperature, "sampling.temperature", 0, false, 100);
      !ok) {
    return ok;
  }
  return validate_number(sampling.top_p, "sampling.top_p", 0, true, 1);
}

}  // namespace

Status validate_utf8(std::string_view text, std::string_view field) {
  const std::optional<std::size_t> at = first_invalid_utf8(text);
  if (!at) return {};
  return invalid_argument(field, std::string(field) + " is not valid UTF-8 at byte " +
                                     std::to_string(*at) + ". Send text as UTF-8.");
}

Status validate_request_id(std::string_view id) {
  const bool length_ok = !id.empty() && id.size() <= kMaxRequestIdBytes;
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-";
  if (length_ok && id.find_first_not_of(kAllowed) == std::string_view::npos) return {};
  return invalid_argument("request_id",
                          "request_id must be 1 to 128 letters, digits, '.', '_', ':' or '-'.");
}

Status validate(const core::GenerateRequest& request) {
  if (Status ok = validate_model_name(request.model); !ok) return ok;
  if (Status ok = std::visit(InputCheck{}, request.input); !ok) return ok;
  if (request.stop.size() > kMaxStops) {
    return invalid_argument("stop", "There are " + std::to_string(request.stop.size()) +
                                        " stop texts, but at most 16 are allowed.");
  }
  for (const std::string& stop : request.stop) {
    if (stop.empty()) return invalid_argument("stop", "A stop text is empty.");
    if (stop.size() > kMaxStopBytes) {
      return invalid_argument("stop", "A stop text has " + std::to_string(stop.size()) +
                                          " bytes, but at most 1024 are allowed.");
    }
    if (Status ok = validate_utf8(stop, "stop"); !ok) return ok;
  }
  if (Status ok = std::visit(FormatCheck{}, request.format); !ok) return ok;
  if (request.top_logprobs && *request.top_logprobs > kMaxTopLogprobs) {
    return invalid_argument(
        "top_logprobs",
        "top_logprobs is " + std::to_string(*request.top_logprobs) + ", but must be 0 to 20.");
  }
  return validate_sampling(request.sampling);
}

Status validate(const core::EmbedRequest& request) {
  if (Status ok = validate_model_name(request.model); !ok) return ok;
  if (request.inputs.empty()) {
    return invalid_argument("inputs", "There is nothing to embed: give at least one input.");
  }
  if (request.inputs.size() > kMaxEmbedInputs) {
    return invalid_argument("inputs", "There are " + std::to_string(request.inputs.size()) +
                                          " inputs, but at most 2048 are allowed at once.");
  }
  std::size_t ids = 0;
  for (const core::EmbedInput& input : request.inputs) {
    if (const auto* tokens = std::get_if<core::TokenInput>(&input)) ids += tokens->ids.size();
  }
  if (Status ok = validate_id_count(ids, "inputs"); !ok) return ok;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const std::string field = "inputs[" + std::to_string(i) + "]";
    if (Status ok = std::visit(EmbedInputCheck{field}, request.inputs[i]); !ok) return ok;
  }
  if (request.dimensions && *request.dimensions == 0) {
    return invalid_argument("dimensions",
                            "dimensions is 0, but must be at least 1. Leave it out for all.");
  }
  return {};
}

Status validate(const core::TokenizeRequest& request) {
  if (Status ok = validate_model_name(request.model); !ok) return ok;
  return std::visit(TokenizeInputCheck{}, request.input);
}

Status validate(const core::DetokenizeRequest& request) {
  if (Status ok = validate_model_name(request.model); !ok) return ok;
  if (request.ids.size() > kMaxDetokenizeIds) {
    return invalid_argument("ids", "There are " + std::to_string(request.ids.size()) +
                                       " ids, but at most 1048576 are allowed.");
  }
  return validate_ids(request.ids, "ids");
}

}  // namespace berth::gateway
