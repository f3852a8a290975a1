#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth::worker {

// How a model writes a tool call. docs/tool-calls.md shows each form.
enum class ToolForm : std::uint8_t {
  kNone,
  kHermes,        // <tool_call>{"name":…,"arguments":{…}}</tool_call>
  kLlama3,        // <|python_tag|>{"name":…,"parameters":{…}}, or the bare object
  kMistral,       // [TOOL_CALLS][{"name":…,"arguments":{…}}]
  kMistralNamed,  // [TOOL_CALLS]name[ARGS]{…}
  kJson,          // the whole answer is the call, as JSON
  kHarmony,       // gpt-oss: <|channel|>commentary to=functions.name<|message|>{…}<|call|>
  kDeepSeek,      // <｜tool▁call▁begin｜>name<｜tool▁sep｜>{…}<｜tool▁call▁end｜>
};

// What the answers of a model look like.
struct AnswerForm {
  ToolForm tools = ToolForm::kNone;
  std::string reasoning_open;  // both empty: the model does not mark its reasoning
  std::string reasoning_close;
  bool starts_in_reasoning = false;  // the prompt opened the reasoning already
};

// How the tools of a request came into its prompt.
enum class PromptTools : std::uint8_t {
  kNone,        // there are none
  kByTemplate,  // the template showed them, in its model's manner
  kDescribed,   // a message describes them and asks for calls as plain JSON
};

// What a chat template's source says about the answers of its model. `prompt_tail`: the last 256
// bytes of the rendered prompt, since a template may open the reasoning itself. Without tools the
// form is kNone, with described ones kJson, but for kHarmony, whose channels part reasoning from
// content in any case.
AnswerForm detect_answer_form(std::string_view template_source, std::string_view prompt_tail,
                              PromptTools tools);

// Texts of control tokens that the parser must see although they are no text of the answer. Views
// of static text and of `form`. Some are no token of the vocabulary at hand: ignore those.
std::vector<std::string_view> needed_control_texts(const AnswerForm& form);

}  // namespace berth::worker
