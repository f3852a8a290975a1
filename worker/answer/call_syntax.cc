#include "worker/answer/call_syntax.h"

namespace berth::worker {
namespace {

using Role = CallToken::Role;

constexpr std::string_view kSpaces = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(kSpaces);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(kSpaces) - from + 1);
}

// `name`, `name[ARGS]` or `name[CALL_ID]…[ARGS]`.
std::optional<std::string> mistral_name(std::string_view header) {
  header = trimmed(header);
  const auto end = header.find('[');
  if (end == std::string_view::npos) return std::string(header);
  const auto rest = header.substr(end);
  const bool has_id = rest.starts_with("[CALL_ID]") && rest.ends_with("[ARGS]");
  if (rest != "[ARGS]" && !has_id) return std::nullopt;
  return std::string(header.substr(0, end));
}

constexpr std::string_view kDeepSeekCalls = "<｜tool▁calls▁begin｜>";
constexpr std::string_view kDeepSeekCallsEnd = "<｜tool▁calls▁end｜>";
constexpr std::string_view kDeepSeekCall = "<｜tool▁call▁begin｜>";
constexpr std::string_view kDeepSeekCallEnd = "<｜tool▁call▁end｜>";
constexpr std::string_view kDeepSeekSeparator = "<｜tool▁sep｜>";
constexpr std::string_view kFence = "```";

// V3.1: `name<sep>`; V3 and R1: `function<sep>name`, a line break and the start of a JSON fence.
std::optional<std::string> deepseek_name(std::string_view header) {
  const auto separator = header.find(kDeepSeekSeparator);
  if (separator == std::string_view::npos) return std::nullopt;
  const auto before = trimmed(header.substr(0, separator));
  const auto after = trimmed(header.substr(separator + kDeepSeekSeparator.size()));
  if (after.empty()) return std::string(before);
  const auto end = after.find_first_of("\r\n`");
  const auto fence = end == std::string_view::npos ? "" : trimmed(after.substr(end));
  if (before != "function" || (!fence.empty() && fence != kFence && fence != "```json")) {
    return std::nullopt;
  }
  return std::string(trimmed(after.substr(0, end)));
}

CallSyntax hermes() {
  CallSyntax syntax;
  syntax.openers = {{"<tool_call>"}};
  syntax.tokens = {{"</tool_call>", Role::kEnd},
                   {"<tool_call>", Role::kNext},
                   {",", Role::kSeparator},
                   {"]", Role::kClose}};
  return syntax;
}

CallSyntax llama3() {
  CallSyntax syntax;
  syntax.openers = {{"<|python_tag|>"}};
  syntax.tokens = {{";", Role::kSeparator},
                   {",", Role::kSeparator},
                   {"]", Role::kClose},
                   {"<|python_tag|>", Role::kNext}};
  syntax.bare_starts = "{[";
  return syntax;
}

CallSyntax mistral() {
  CallSyntax syntax;
  syntax.openers = {{"[TOOL_CALLS]"}};
  syntax.tokens = {{",", Role::kSeparator}, {"]", Role::kClose}, {"[TOOL_CALLS]", Role::kNext}};
  syntax.name_in_header = mistral_name;
  return syntax;
}

// The markers are those of models whose calls are plain JSON between them (Granite, Phi-4,
// Command R7B).
CallSyntax json() {
  CallSyntax syntax;
  syntax.openers = {{"<|tool_call|>"}, {"<|START_ACTION|>"}};
  syntax.tokens = {
      {",", Role::kSeparator},       {";", Role::kSeparator},        {"]", Role::kClose},
      {kFence, Role::kEnd},          {"<|/tool_call|>", Role::kEnd}, {"<|END_ACTION|>", Role::kEnd},
      {"<|tool_call|>", Role::kNext}};
  syntax.bare_starts = "{[`";
  return syntax;
}

CallSyntax deepseek() {
  CallSyntax syntax;
  syntax.openers = {{kDeepSeekCall}, {kDeepSeekCalls, true}};
  syntax.tokens = {{kFence, Role::kClose},
                   {kDeepSeekCallEnd, Role::kClose},
                   {kDeepSeekCallsEnd, Role::kEnd},
                   {kDeepSeekCall, Role::kNext}};
  syntax.is_json = false;
  syntax.name_in_header = deepseek_name;
  syntax.header_has_spaces = true;
  return syntax;
}

}  // namespace

const CallSyntax& call_syntax(ToolForm form) {
  static const CallSyntax of_none;
  static const CallSyntax of_hermes = hermes();
  static const CallSyntax of_llama3 = llama3();
  static const CallSyntax of_mistral = mistral();
  static const CallSyntax of_json = json();
  static const CallSyntax of_deep_seek = deepseek();
  switch (form) {
    case ToolForm::kHermes:
      return of_hermes;
    case ToolForm::kLlama3:
      return of_llama3;
    case ToolForm::kMistral:
    case ToolForm::kMistralNamed:
      return of_mistral;
    case ToolForm::kJson:
      return of_json;
    case ToolForm::kDeepSeek:
      return of_deep_seek;
    case ToolForm::kNone:
    case ToolForm::kHarmony:
      break;
  }
  return of_none;
}

}  // namespace berth::worker
