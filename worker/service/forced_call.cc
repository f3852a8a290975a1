#include "worker/service/forced_call.h"

#include <algorithm>
#include <boost/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "worker/grammar/json_schema.h"
#include "worker/grammar/tool_call_schema.h"
#include "worker/service/invalid_argument.h"

namespace berth::worker {
namespace {

namespace json = boost::json;

constexpr const char* kTools = "chat.tools_json";
constexpr std::size_t kMaxHeaderName = 64;
constexpr std::size_t kMaxDepth = 64;  // as check_chat_tools() has it

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

// The only tool that can be called; nothing where there are several.
std::optional<std::string> only_tool(const ChatTools& tools) {
  if (tools.choice.kind == ToolChoice::Kind::kNamed) return tools.choice.name;
  if (tools.names.size() == 1) return tools.names.front();
  return std::nullopt;
}

// The schema of a tool's arguments. `tools_json` has passed check_chat_tools() and
// tool_call_schema().
std::string parameters_of(std::string_view tools_json, const std::string& name) {
  json::error_code error;
  json::parse_options options;
  options.max_depth = kMaxDepth;
  const auto tools = json::parse(tools_json, error, {}, options);
  if (!error && tools.is_array()) {
    for (const auto& tool : tools.get_array()) {
      const auto& function = tool.as_object().at("function").as_object();
      if (function.at("name") != json::string_view(name)) continue;
      const auto* const parameters = function.if_contains("parameters");
      if (parameters != nullptr && parameters->is_object()) return json::serialize(*parameters);
    }
  }
  return R"({"type": "object", "additionalProperties": false})";
}

Status set_grammar(const std::string& schema, const GrammarForm& wrapper,
                   SamplingSettings& sampling) {
  auto grammar = json_schema_to_gbnf(schema, wrapper);
  if (!grammar) return fail(about(grammar.error(), kTools));
  sampling.grammar = std::move(*grammar);
  return {};
}

}  // namespace

Status apply_forced_call(std::string_view tools_json, const ChatTools& tools, AnswerForm& form,
                         SamplingSettings& sampling) {
  const auto only = only_tool(tools);
  auto syntax = call_grammar(form.tools).value_or(CallGrammar{});
  const auto schema = tool_call_schema(tools_json, only, syntax.keys);
  if (!schema) return fail(about(schema.error(), kTools));
  if (only && fits_header(*only) && !form.starts_in_reasoning) {
    if (const auto header = header_of(form.tools, *only)) {
      return set_grammar(parameters_of(tools_json, *only), *header, sampling);
    }
  }
  if (!call_grammar(form.tools)) {
    // Without its channels gpt-oss has no reasoning either.
    if (form.tools == ToolForm::kHarmony) form = AnswerForm{};
    form.tools = ToolForm::kJson;
  }
  // One call of it is what was asked for.
  if (tools.choice.kind == ToolChoice::Kind::kNamed) syntax.wrapper.repeated = false;
  return set_grammar(*schema, syntax.wrapper, sampling);
}

}  // namespace berth::worker
