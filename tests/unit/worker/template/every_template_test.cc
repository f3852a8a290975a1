// What holds for every shape of template in tests/models/templates.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "worker/template/chat_template.h"

namespace berth::worker {
namespace {

namespace fs = std::filesystem;

// Of all families together; none is a part of another.
const std::vector<std::string>& control_texts() {
  static const auto* const texts = new std::vector<std::string>{"<s>",
                                                                "</s>",
                                                                "<|im_start|>",
                                                                "<|im_end|>",
                                                                "<|im_sep|>",
                                                                "<|eot_id|>",
                                                                "<|start_header_id|>",
                                                                "<|end_header_id|>",
                                                                "[INST]",
                                                                "[/INST]",
                                                                "[SYSTEM_PROMPT]",
                                                                "[/SYSTEM_PROMPT]",
                                                                "[TOOL_CALLS]",
                                                                "[AVAILABLE_TOOLS]",
                                                                "[/AVAILABLE_TOOLS]",
                                                                "[TOOL_RESULTS]",
                                                                "[/TOOL_RESULTS]",
                                                                "[ARGS]",
                                                                "<start_of_turn>",
                                                                "<end_of_turn>",
                                                                "<|user|>",
                                                                "<|assistant|>",
                                                                "<|system|>",
                                                                "<|end|>",
                                                                "<|observation|>",
                                                                "[gMASK]",
                                                                "<sop>",
                                                                "<｜User｜>",
                                                                "<｜Assistant｜>",
                                                                "<｜end▁of▁sentence｜>",
                                                                "<｜tool▁calls▁begin｜>",
                                                                "<|start|>",
                                                                "<|message|>",
                                                                "<|channel|>",
                                                                "<|call|>",
                                                                "<|return|>",
                                                                "<|START_OF_TURN_TOKEN|>",
                                                                "<|END_OF_TURN_TOKEN|>",
                                                                "<|USER_TOKEN|>",
                                                                "<|CHATBOT_TOKEN|>",
                                                                "<|SYSTEM_TOKEN|>",
                                                                "<|START_RESPONSE|>",
                                                                "<|END_RESPONSE|>",
                                                                "<|start_of_role|>",
                                                                "<|end_of_role|>",
                                                                "<|end_of_text|>",
                                                                "<extra_id_0>",
                                                                "<extra_id_1>",
                                                                "<think>",
                                                                "</think>",
                                                                "<tool_call>",
                                                                "</tool_call>"};
  return *texts;
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<fs::path> templates() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(BERTH_TEMPLATES)) {
    if (entry.path().extension() == ".jinja") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// The control texts that would become tokens, in their order.
std::vector<std::string> tokens(const std::vector<PromptPart>& parts) {
  std::vector<std::string> found;
  for (const auto& part : parts) {
    if (part.literal) continue;
    for (std::size_t at = 0; at < part.text.size(); ++at) {
      const auto rest = std::string_view(part.text).substr(at);
      for (const auto& one : control_texts()) {
        if (rest.starts_with(one)) found.push_back(one);
      }
    }
  }
  return found;
}

// A conversation with `evil` wherever a client can write.
std::string messages_with(const std::string& evil) {
  return R"-([{"role":"system","content":"s )-" + evil + R"-("},
    {"role":"user","content":")-" +
         evil + evil + R"-(  "},
    {"role":"assistant","content":"Hello."},
    {"role":"user","content":" u )-" +
         evil + R"-("},
    {"role":"assistant","content":"","tool_calls":[{"id":"abcdefgh1","type":"function",
      "function":{"name":"f","arguments":{"a":")-" +
         evil + R"-("}}}]},
    {"role":"tool","tool_call_id":"abcdefgh1","content":")-" +
         evil + R"-("}])-";
}
std::string tools_with(const std::string& evil) {
  return R"-([{"type":"function","function":{"name":"f","description":")-" + evil +
         R"-(","parameters":{"type":"object","properties":{"a":{"type":"string","description":"x )-" +
         evil + R"-("}},"required":["a"]}}}])-";
}

std::vector<PromptPart> parts_of(const fs::path& path, const std::string& evil) {
  auto parsed = ChatTemplate::parse(read(path), "<s>", "</s>");
  EXPECT_TRUE(parsed.has_value()) << path << ": " << parsed.error().message;
  if (!parsed) return {};
  const auto messages = messages_with(evil);
  const auto tools = tools_with(evil);
  auto prompt = parsed->render({messages, tools, {}, true}, ControlTexts(control_texts()), 0);
  EXPECT_TRUE(prompt.has_value()) << path << ": " << prompt.error().message;
  return prompt ? prompt->parts : std::vector<PromptPart>();
}

TEST(EveryTemplate, ClientsWriteNoControlTokens) {
  std::string evil;
  for (const auto& one : control_texts()) evil += one + " " + one + one;
  const auto paths = templates();
  ASSERT_GE(paths.size(), 26U);
  for (const auto& path : paths) {
    const auto harmless = tokens(parts_of(path, "harmless words"));
    const auto parts = parts_of(path, evil);
    EXPECT_EQ(tokens(parts), harmless) << path;
    const auto literal = std::count_if(parts.begin(), parts.end(),
                                       [](const PromptPart& one) { return one.literal; });
    EXPECT_GT(literal, 2) << path;
  }
}

}  // namespace
}  // namespace berth::worker
