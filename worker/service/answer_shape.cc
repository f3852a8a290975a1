#include "worker/service/answer_shape.h"

#include <optional>
#include <string>
#include <utility>

#include "worker/grammar/gbnf_check.h"
#include "worker/grammar/json_schema.h"
#include "worker/grammar/tool_call_schema.h"
#include "worker/service/invalid_argument.h"

namespace berth::worker {
namespace {

// How gpt-oss begins what the user sees.
constexpr const char* kHarmonyFinal = "<|channel|>final<|message|>";

// The same error about a field of the request.
Error about(const Error& error, const char* param) {
  ErrorExtras extras;
  if (error.extras != nullptr) extras = *error.extras;
  extras.param = param;
  return {error.reason, error.message, std::move(extras)};
}

// How a model writes calls whose names are within the JSON.
struct CallGrammar {
  GrammarForm wrapper;
  ToolCallKeys keys;
};

std::optional<CallGrammar> call_grammar(ToolForm form) {
  CallGrammar grammar;
  switch (form) {
    case ToolForm::kHermes:
      grammar.wrapper.before = "<tool_call>\n";
      grammar.wrapper.after = "\n</tool_call>";
      grammar.wrapper.separator = "\n";
      grammar.wrapper.repeated = true;
      return grammar;
    case ToolForm::kLlama3:
      grammar.keys.arguments = "parameters";
      return grammar;
    case ToolForm::kMistral:
      grammar.wrapper.opening = "[TOOL_CALLS][";
      grammar.wrapper.separator = ", ";
      grammar.wrapper.closing = "]";
      grammar.wrapper.repeated = true;
      return grammar;
    case ToolForm::kJson:
      return grammar;
    case ToolForm::kNone:
    case ToolForm::kMistralNamed:
    case ToolForm::kHarmony:
    case ToolForm::kDeepSeek:
      break;
  }
  return std::nullopt;
}

}  // namespace

Status check_combination(const v1::GenerateRequest& request, const ChatTools& tools) {
  const bool has_format = request.format().format_case() != v1::OutputFormat::FORMAT_NOT_SET;
  if (has_format && !tools.names.empty()) {
    return invalid("format",
                   "format and tools cannot shape the same answer. Leave format or "
                   "chat.tools_json out, or set chat.tool_choice_json to \"none\".");
  }
  if ((has_format || tools.choice.is_forced()) && request.sampling().ignore_eos()) {
    return invalid("sampling.ignore_eos",
                   "sampling.ignore_eos lets no answer end, but this one must: a format or a call "
                   "of a tool is wanted. Leave sampling.ignore_eos out.");
  }
  return {};
}

Status apply_format(const v1::OutputFormat& format, SamplingSettings& sampling) {
  switch (format.format_case()) {
    case v1::OutputFormat::kJsonObject:
      if (!format.json_object()) {
        return invalid("format.json_object",
                       "format.json_object must be true where it is set. Leave format out for free "
                       "text.");
      }
      sampling.grammar = any_json_grammar();
      return {};
    case v1::OutputFormat::kJsonSchema: {
      auto grammar = json_schema_to_gbnf(format.json_schema());
      if (!grammar) return fail(about(grammar.error(), "format.json_schema"));
      sampling.grammar = std::move(*grammar);
      return {};
    }
    case v1::OutputFormat::kGrammar:
      if (auto checked = check_gbnf(format.grammar()); !checked) {
        return fail(about(checked.error(), "format.grammar"));
      }
      sampling.grammar = format.grammar();
      return {};
    case v1::OutputFormat::FORMAT_NOT_SET:
      break;
  }
  return {};
}

Status apply_forced_tool(std::string_view tools_json, const ToolChoice& choice, AnswerForm& form,
                         SamplingSettings& sampling) {
  auto syntax = call_grammar(form.tools);
  if (!syntax) {
    // Without its channels there is no reasoning either.
    if (form.tools == ToolForm::kHarmony) form = AnswerForm{};
    form.tools = ToolForm::kJson;
    syntax.emplace();
  }
  std::optional<std::string> only;
  if (choice.kind == ToolChoice::Kind::kNamed) {
    only = choice.name;
    syntax->wrapper.repeated = false;  // one call of it is what was asked for
  }
  const auto schema = tool_call_schema(tools_json, only, syntax->keys);
  if (!schema) return fail(about(schema.error(), "chat.tools_json"));
  auto grammar = json_schema_to_gbnf(*schema, syntax->wrapper);
  if (!grammar) return fail(about(grammar.error(), "chat.tools_json"));
  sampling.grammar = std::move(*grammar);
  return {};
}

void begin_after_reasoning(const AnswerForm& form, SamplingSettings& sampling) {
  if (form.tools == ToolForm::kHarmony) {
    sampling.grammar_triggers = {kHarmonyFinal};
  } else if (form.starts_in_reasoning) {
    sampling.grammar_triggers = {form.reasoning_close};
  }
}

}  // namespace berth::worker
