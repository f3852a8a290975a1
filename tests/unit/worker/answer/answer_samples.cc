#include "tests/unit/worker/answer/answer_samples.h"

#include <rapidcheck.h>

#include <array>
#include <utility>

namespace berth::worker {
namespace {

using Call = ParsedAnswer::Call;

template <std::size_t n>
std::string one_of(const std::array<std::string_view, n>& choices) {
  return std::string(choices[below(n)]);
}

std::string space() {
  static constexpr std::array<std::string_view, 5> kSpaces{"", "", " ", "\n", "\n  "};
  return one_of(kSpaces);
}

std::string json_string() {
  static constexpr std::array<std::string_view, 16> kParts{
      "a", "ß", "🚢", "\\n",     "\\\"", "\\\\",    "\\u20ac", "\\ud83d\\udea2", "</tool_call>",
      "{", "}", "]", "<|call|", "```",  "<think>", " "};
  std::string text = "\"";
  for (auto i = below(4); i > 0; --i) text += one_of(kParts);
  return text + "\"";
}

std::string json_value(int depth);

std::string json_object(int depth) {
  std::string text = "{" + space();
  const auto count = below(4);
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) text += "," + space();
    text += json_string() + space() + ":" + space() + json_value(depth - 1);
  }
  return text + space() + "}";
}

std::string json_value(int depth) {
  static constexpr std::array<std::string_view, 6> kWords{"0",     "-1.5e+3", "true",
                                                          "false", "null",    "12"};
  switch (below(depth > 0 ? 4 : 2)) {
    case 0:
      return one_of(kWords);
    case 1:
      return json_string();
    case 2:
      return json_object(depth);
    default:
      return "[" + json_value(depth - 1) + space() + "," + json_value(depth - 1) + "]";
  }
}

// A JSON string whose value is `text`, with escapes at will.
std::string as_json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += std::string("\\") + c;
    } else if (c == '\n') {
      out += coin() ? "\\n" : "\\u000A";
    } else if (c == '/' && coin()) {
      out += "\\/";
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::vector<Call> some_calls(std::size_t most) {
  static constexpr std::array<std::string_view, 3> kNames{"f", "get_weather", "g-2"};
  std::vector<Call> calls;
  const auto count = 1 + below(most);
  for (std::size_t i = 0; i < count; ++i) calls.push_back({one_of(kNames), json_object(3)});
  return calls;
}

// A call as an object, its keys in any order.
std::string object_of(const Call& call, std::string_view name_key, std::string_view arguments_key) {
  const auto key = [](std::string_view text) {
    return "\"" + std::string(text) + "\"" + space() + ":" + space();
  };
  std::vector<std::string> members{
      key(name_key) + "\"" + call.name + "\"",
      key(arguments_key) + (coin() ? call.arguments : as_json_string(call.arguments))};
  if (coin()) std::swap(members[0], members[1]);
  if (coin()) members.insert(members.begin() + (coin() ? 1 : 0), key("type") + "\"function\"");
  if (coin()) members.push_back(key("id") + "\"x}\"");
  std::string text = "{" + space();
  for (std::size_t i = 0; i < members.size(); ++i)
    text += (i > 0 ? "," : "") + members[i] + space();
  return text + "}";
}

void join_objects(Sample& sample, std::string_view between, std::string_view name_key,
                  std::string_view arguments_key) {
  for (std::size_t i = 0; i < sample.expected.calls.size(); ++i) {
    if (i > 0) sample.text += std::string(between) + space();
    sample.text += object_of(sample.expected.calls[i], name_key, arguments_key) + space();
  }
}

void add_content(Sample& sample) {
  if (!coin()) return;
  const auto text = text_of(below(12), coin() ? "." : "");
  sample.text += text;
  sample.expected.content += text;
}

void add_hermes(Sample& sample) {
  add_content(sample);
  for (const auto& call : sample.expected.calls) {
    sample.text += "<tool_call>" + space() + object_of(call, "name", "arguments") + space() +
                   "</tool_call>" + space();
  }
  add_content(sample);
}

void add_llama(Sample& sample) {
  if (coin()) {
    add_content(sample);
    sample.text += "<|python_tag|>" + space();
  }
  join_objects(sample, ";", "name", "parameters");
}

void add_mistral(Sample& sample) {
  add_content(sample);
  if (coin()) {
    sample.text += "[TOOL_CALLS]" + space() + "[";
    join_objects(sample, ",", "name", "arguments");
    sample.text += "]" + space();
  } else {
    for (const auto& call : sample.expected.calls) {
      sample.text += "[TOOL_CALLS]" + call.name + (coin() ? "[CALL_ID]123456789" : "") + "[ARGS]" +
                     call.arguments + space();
    }
  }
  add_content(sample);
}

void add_json(Sample& sample) {
  static constexpr std::array<std::string_view, 4> kNames{"name", "function", "tool", "tool_name"};
  static constexpr std::array<std::string_view, 2> kArguments{"arguments", "parameters"};
  const bool has_fence = coin();
  sample.text += space();
  if (has_fence) sample.text += coin() ? "```json\n" : "```\n";
  const bool is_list = sample.expected.calls.size() > 1 || coin();
  if (is_list) sample.text += "[" + space();
  join_objects(sample, ",", one_of(kNames), one_of(kArguments));
  if (is_list) sample.text += "]" + space();
  if (has_fence) sample.text += "```\n";
}

void add_harmony(Sample& sample) {
  if (coin()) {
    sample.expected.reasoning = text_of(below(12));
    sample.text +=
        "<|channel|>analysis<|message|>" + sample.expected.reasoning + "<|end|><|start|>assistant";
  }
  if (coin()) {
    sample.expected.content = text_of(below(12));
    sample.text += "<|channel|>commentary<|message|>" + sample.expected.content + "<|end|>";
    sample.text += "<|start|>assistant";
  }
  for (const auto& call : sample.expected.calls) {
    sample.text += "<|channel|>commentary to=functions." + call.name +
                   (coin() ? " <|constrain|>json" : "") + "<|message|>" + call.arguments +
                   "<|call|><|start|>assistant";
  }
}

void add_deepseek(Sample& sample) {
  add_content(sample);
  sample.text += "<｜tool▁calls▁begin｜>" + space();
  const bool is_new = coin();
  for (const auto& call : sample.expected.calls) {
    sample.text += "<｜tool▁call▁begin｜>";
    sample.text +=
        is_new ? call.name + "<｜tool▁sep｜>" + call.arguments
               : "function<｜tool▁sep｜>" + call.name + "\n```json\n" + call.arguments + "\n```";
    sample.text += "<｜tool▁call▁end｜>" + space();
  }
  sample.text += "<｜tool▁calls▁end｜>" + space();
  add_content(sample);
}

}  // namespace

bool coin() {
  return *rc::gen::arbitrary<bool>();
}

std::size_t below(std::size_t end) {
  // RapidCheck's own ranges grow with the size of a case; here every choice counts from the start.
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::size_t>(0, end));
}

std::string text_of(std::size_t parts, std::string_view end) {
  static constexpr std::array<std::string_view, 24> kParts{
      "a",     "word ",  "ß",          "漢",          "🚢",       "\n",
      "\n\n",  "<",      "<tool_cal",  "</tool_call", "[TOOL_",  "[",
      "{",     "}",      "<|python_t", "<|channe",    "<｜tool", "```",
      "</thi", "<think", "\"",         "\\",          " ",       "<｜tool▁call▁begin"};
  std::string text = "T";
  for (std::size_t i = 0; i < parts; ++i) text += one_of(kParts);
  return text + std::string(end);
}

std::string noise() {
  static constexpr std::array<std::string_view, 64> kParts{
      "<tool_call>",
      "</tool_call>",
      "<|python_tag|>",
      "[TOOL_CALLS]",
      "[ARGS]",
      "[CALL_ID]",
      "<|channel|>",
      "<|message|>",
      "<|start|>",
      "<|end|>",
      "<|call|>",
      "analysis",
      "final",
      " to=functions.f",
      "<｜tool▁calls▁begin｜>",
      "<｜tool▁call▁begin｜>",
      "<｜tool▁sep｜>",
      "<｜tool▁call▁end｜>",
      "<｜tool▁calls▁end｜>",
      "<think>",
      "</think>",
      "```json\n",
      "```",
      "{\"name\":\"f\",\"arguments\":{}}",
      "{\"name\":\"f\",\"parameters\":{\"a\":[1]}}",
      "{\"name\":\"rm\",\"arguments\":{}}",
      "{\"name\":\"f\",\"arguments\":",
      "{\"arguments\":",
      "{\"name\":",
      "\"name\":\"f\"",
      "\"f\"",
      "{\"function\":",
      "\"type\":\"function\"",
      "f",
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      ";",
      "\"",
      "\\",
      "\\u",
      "\\ud83d",
      "\\udea2",
      "12",
      "true",
      " ",
      "\n",
      "\r\n",
      "ß",
      "🚢",
      "a",
      "<",
      "<tool",
      "</",
      "<|",
      "[TOOL",
      "`",
      "<th",
      "function",
      "json",
      "<|START_ACTION|>"};
  std::string text;
  for (auto i = below(24); i > 0; --i) text += one_of(kParts);
  return text;
}

std::vector<std::string> cut_at_will(const std::string& text) {
  std::vector<std::string> pieces;
  const auto longest = 1 + below(24);
  std::size_t at = 0;
  while (at < text.size()) {
    const auto size = 1 + below(longest);
    pieces.push_back(text.substr(at, size));
    at += size;
  }
  return pieces;
}

Sample sample_of(ToolForm tools) {
  Sample sample;
  sample.form.tools = tools;
  if (tools == ToolForm::kHarmony) {
    sample.expected.calls = some_calls(3);
    add_harmony(sample);
    return sample;
  }
  if (coin()) {
    sample.form = {tools, "<think>", "</think>", coin()};
    sample.expected.reasoning = text_of(below(12));
    if (!sample.form.starts_in_reasoning || coin()) sample.text = "<think>";
    sample.text += coin() ? "\n" : "";
    sample.text += sample.expected.reasoning + (coin() ? "\n" : "") + "</think>";
    sample.text += coin() ? "\n\n" : "";
  }
  if (tools != ToolForm::kNone) sample.expected.calls = some_calls(3);
  switch (tools) {
    case ToolForm::kNone:
      add_content(sample);
      break;
    case ToolForm::kHermes:
      add_hermes(sample);
      break;
    case ToolForm::kLlama3:
      add_llama(sample);
      break;
    case ToolForm::kMistral:
    case ToolForm::kMistralNamed:
      add_mistral(sample);
      break;
    case ToolForm::kJson:
      add_json(sample);
      break;
    case ToolForm::kDeepSeek:
      add_deepseek(sample);
      break;
    case ToolForm::kHarmony:
      break;
  }
  return sample;
}

}  // namespace berth::worker
