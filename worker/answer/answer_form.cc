#include "worker/answer/answer_form.h"

#include <array>
#include <utility>

#include "worker/answer/call_syntax.h"

namespace berth::worker {
namespace {

constexpr std::string_view kHarmonyReasoning = "<|channel|>analysis<|message|>";

// As models and their templates mark reasoning; the first whose texts a template has counts.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kReasoningMarks{{
    {"<think>", "</think>"},
    {"[THINK]", "[/THINK]"},
    {"<|START_THINKING|>", "<|END_THINKING|>"},
    {"<seed:think>", "</seed:think>"},
    {"<reasoning>", "</reasoning>"},
}};

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string_view without_end_space(std::string_view text) {
  const auto last = text.find_last_not_of(" \t\r\n");
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

ToolForm detect_tools(std::string_view source) {
  // First what only one family has: distilled models keep their teacher's template.
  if (has(source, "<｜tool▁call▁begin｜>") || has(source, "<｜tool▁calls▁begin｜>")) {
    return ToolForm::kDeepSeek;
  }
  if (has(source, "[TOOL_CALLS]")) {
    return has(source, "[ARGS]") ? ToolForm::kMistralNamed : ToolForm::kMistral;
  }
  if (has(source, "<tool_call>")) {
    // GLM and Qwen's coder write tags for each argument between the same markers: text for us.
    const bool has_tags = has(source, "<arg_key>") || has(source, "<function=");
    return has_tags ? ToolForm::kNone : ToolForm::kHermes;
  }
  const bool is_llama =
      has(source, "<|start_header_id|>") && has(source, "tools") && has(source, "parameters");
  if (has(source, "<|python_tag|>") || is_llama) return ToolForm::kLlama3;
  return ToolForm::kJson;
}

}  // namespace

AnswerForm detect_answer_form(std::string_view template_source, std::string_view prompt_tail,
                              PromptTools tools) {
  AnswerForm form;
  if (has(template_source, "<|channel|>") && has(template_source, "<|message|>")) {
    form.tools = ToolForm::kHarmony;
    form.starts_in_reasoning = prompt_tail.ends_with(kHarmonyReasoning);
    return form;
  }
  switch (tools) {
    case PromptTools::kNone:
      break;
    case PromptTools::kByTemplate:
      form.tools = detect_tools(template_source);
      break;
    case PromptTools::kDescribed:
      form.tools = ToolForm::kJson;
      break;
  }
  for (const auto& [open, close] : kReasoningMarks) {
    if (!has(template_source, open) && !has(template_source, close)) continue;
    form.reasoning_open = open;
    form.reasoning_close = close;
    form.starts_in_reasoning = without_end_space(prompt_tail).ends_with(open);
    break;
  }
  return form;
}

std::vector<std::string_view> needed_control_texts(const AnswerForm& form) {
  std::vector<std::string_view> texts;
  if (!form.reasoning_open.empty()) texts.emplace_back(form.reasoning_open);
  if (!form.reasoning_close.empty()) texts.emplace_back(form.reasoning_close);
  if (form.tools == ToolForm::kHarmony) {
    texts.insert(texts.end(), {"<|start|>", "<|channel|>", "<|message|>", "<|constrain|>",
                               "<|end|>", "<|call|>", "<|return|>"});
    return texts;
  }
  const auto& syntax = call_syntax(form.tools);
  for (const auto& opener : syntax.openers) texts.push_back(opener.text);
  for (const auto& token : syntax.tokens) {
    if (token.role != CallToken::Role::kNext && token.is_mark()) texts.push_back(token.text);
  }
  if (syntax.name_in_header != nullptr) {
    if (form.tools == ToolForm::kDeepSeek) {
      texts.emplace_back("<｜tool▁sep｜>");
    } else {
      texts.insert(texts.end(), {"[ARGS]", "[CALL_ID]"});
    }
  }
  return texts;
}

}  // namespace berth::worker
