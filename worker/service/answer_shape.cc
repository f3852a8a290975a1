#include "worker/service/answer_shape.h"

#include <string>
#include <utility>

#include "worker/grammar/gbnf_check.h"
#include "worker/grammar/json_schema.h"
#include "worker/service/harmony_format.h"
#include "worker/service/invalid_argument.h"

namespace berth::worker {
namespace {

// In which field the client has sent the format.
const char* param_of(const v1::OutputFormat& format) {
  switch (format.format_case()) {
    case v1::OutputFormat::kJsonObject:
      return "format.json_object";
    case v1::OutputFormat::kJsonSchema:
      return "format.json_schema";
    case v1::OutputFormat::kGrammar:
      return "format.grammar";
    case v1::OutputFormat::FORMAT_NOT_SET:
      break;
  }
  return "format";
}

}  // namespace

Status check_combination(const v1::GenerateRequest& request, const ChatTools& tools) {
  const bool has_format = request.format().format_case() != v1::OutputFormat::FORMAT_NOT_SET;
  if (has_format && !tools.tools.empty()) {
    return invalid_argument("format",
                            "format and tools cannot shape the same answer. Leave format or "
                            "chat.tools_json out, or set chat.tool_choice_json to \"none\".");
  }
  if ((has_format || tools.choice.is_forced()) && request.sampling().ignore_eos()) {
    return invalid_argument(
        "sampling.ignore_eos",
        "sampling.ignore_eos lets no answer end, but this one must: a format or a call "
        "of a tool is wanted. Leave sampling.ignore_eos out.");
  }
  return {};
}

Status apply_format(const v1::OutputFormat& format, SamplingSettings& sampling) {
  switch (format.format_case()) {
    case v1::OutputFormat::kJsonObject:
      if (!format.json_object()) {
        return invalid_argument(
            "format.json_object",
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

Status begin_after_reasoning(const AnswerForm& form, const v1::OutputFormat& format,
                             SamplingSettings& sampling) {
  if (form.tools == ToolForm::kHarmony) {
    // A forced call has its channel in its grammar.
    if (format.format_case() == v1::OutputFormat::FORMAT_NOT_SET) return {};
    sampling.grammar = harmony_format(sampling.grammar, form.starts_in_reasoning);
    auto checked = check_gbnf(sampling.grammar, GbnfBounds::kConverterBytes);
    if (!checked) return fail(about(checked.error(), param_of(format)));
  } else if (form.starts_in_reasoning && !form.reasoning_close.empty()) {
    sampling.grammar_triggers = {form.reasoning_close};
  }
  return {};
}

}  // namespace berth::worker
