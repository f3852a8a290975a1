#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "worker/template/chat_template.h"

namespace berth::worker {

constexpr std::string_view kHello = R"([{"role":"user","content":"x"}])";

inline ChatTemplate parsed(const std::string& source) {
  auto result = ChatTemplate::parse(source, "<s>", "</s>");
  EXPECT_TRUE(result.has_value()) << source << ": " << result.error().message;
  if (!result) result = ChatTemplate::parse("not parsed", "", "");
  return std::move(*result);
}

// What a template makes, or "error: …".
inline std::string rendered(const std::string& source,
                            const ChatRequest& request = {kHello, {}, {}, true}) {
  const auto prompt = parsed(source).render(request, ControlTexts({}), 0);
  if (!prompt) return "error: " + prompt.error().message;
  EXPECT_EQ(prompt->parts.size(), 1U);
  return prompt->parts.front().text;
}

}  // namespace berth::worker
