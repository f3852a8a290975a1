#include "worker/service/forced_call.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "worker/grammar/json_schema.h"
#include "worker/grammar/tool_call_schema.h"
#include "worker/service/invalid_argument.h"

namespace berth::worker {
namespace {

constexpr const char* kTools = "chat.tools_json";
constexpr std::size_t kMaxHeaderName = 64;

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

// What stands around the arguments of a call whose name is in a header before them.
std::optional<GrammarForm> header_of(ToolForm form, const std::string& name) {
  GrammarForm wrapper;
  switch (form) {
    case ToolForm::kMistralNamed:
      wrapper.opening = "[TOOL_CALLS]" + name + "[ARGS]";
      return wrapper;
    case ToolForm::kDeepSeek:  // as of V3.1
      wrapper.opening = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>" + name + "<｜tool▁sep｜>";
      wrapper.closing = "<｜tool▁call▁end｜><｜tool▁calls▁end｜>";
      return wrapper;
    case ToolForm::kHarmony:  // <|call|> is a token that ends an answer
      wrapper.opening =
          "<|channel|>commentary to=functions." + name + " <|constrain|>json<|message|>";
      return wrapper;
    case ToolForm::kNone:
    case ToolForm::kHermes:
    case ToolForm::kLlama3:
    case ToolForm::kMistral:
    case ToolForm::kJson:
      break;
  }
  return std::nullopt;
}

// Whether no form's header can mistake a part of the name for a mark of its own.
bool fits_header(const std::string& name) {
  return name.size() <= kMaxHeaderName && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-';
         });
}

// Those that can be called: the named one, or all.
std::span<const Tool> callable(const ChatTools& tools) {
  const std::span<const Tool> all = tools.tools;
  if (tools.choice.kind != ToolChoice::Kind::kNamed) return all;
  const auto named = std::find_if(all.begin(), all.end(),
                                  [&](const Tool& tool) { return tool.name == tools.choice.name; });
  return all.subspan(static_cast<std::size_t>(named - all.begin()), 1);
}

Status set_grammar(const std::string& schema, const GrammarForm& wrapper,
                   SamplingSettings& sampling) {
  auto grammar = json_schema_to_gbnf(schema, wrapper);
  if (!grammar) return fail(about(grammar.error(), kTools));
  sampling.grammar = std::move(*grammar);
  return {};
}

}  // namespace

Status apply_forced_call(const ChatTools& tools, AnswerForm& form, SamplingSettings& sampling) {
  const auto possible = callable(tools);
  if (possible.size() == 1 && fits_header(possible.front().name) && !form.starts_in_reasoning) {
    const auto& only = possible.front();
    if (const auto header = header_of(form.tools, only.name)) {
      return set_grammar(arguments_schema(only), *header, sampling);
    }
  }
  auto syntax = call_grammar(form.tools).value_or(CallGrammar{});
  if (!call_grammar(form.tools)) {
    // Without its channels gpt-oss has no reasoning either.
    if (form.tools == ToolForm::kHarmony) form = AnswerForm{};
    form.tools = ToolForm::kJson;
  }
  // One call of it is what was asked for.
  if (tools.choice.kind == ToolChoice::Kind::kNamed) syntax.wrapper.repeated = false;
  return set_grammar(tool_call_schema(possible, syntax.keys), syntax.wrapper, sampling);
}

}  // namespace berth::worker
