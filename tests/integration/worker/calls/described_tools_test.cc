// Tools that a template does not show: the prompt asks for calls as plain JSON, and so are answers
// read and grammars made, whatever marks the template has for past calls.

#include <nlohmann/json.hpp>

#include "tests/integration/worker/calls/calling.h"

namespace berth::worker {
namespace {

using Json = nlohmann::json;
using testing::StartsWith;

// As DeepSeek V3's, with the turns of tinychat's own.
constexpr const char* kTemplate = R"(
{%- for m in messages -%}
<|im_start|>{{ m.role }}
{{ m.content }}
{%- for call in m.tool_calls or [] -%}
<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{{ call.function.name }}<｜tool▁sep｜>{{ call.function.arguments }}
{%- endfor -%}
<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% endif -%})";

constexpr const char* kTools = R"([{"type": "function", "function": {"name": "weather",
  "parameters": {"type": "object", "properties": {"days": {"enum": [1, 2, 3]}},
                 "required": ["days"]}}}])";

TEST(DescribedTools, AreCalledAsThePromptAsksFor) {
  const Scratch scratch;
  const auto path = scratch.write("t.jinja", kTemplate);
  WorkerProcess worker({tinychat(), {"--context", "1024", "--chat-template", path}});
  const auto loaded = worker.wait_loaded();
  ASSERT_TRUE(loaded && loaded->has_ready()) << worker.log();

  auto request = greedy_chat("What is the weather?");
  request.mutable_chat()->set_tools_json(kTools);
  request.mutable_chat()->set_tool_choice_json(R"("required")");
  request.set_max_tokens(100);
  const auto answer = answer_of(worker, request);
  ASSERT_TRUE(answer.outcome.status.ok()) << answer.outcome.status.error_message();
  ASSERT_EQ(answer.calls.size(), 1U) << answer.outcome.text;
  EXPECT_EQ(answer.calls[0].name(), "weather");
  EXPECT_EQ(answer.outcome.text, "");

  request.mutable_chat()->set_raw_answer(true);
  const auto raw = answer_of(worker, request).outcome.text;
  EXPECT_THAT(raw, StartsWith("{"));
  EXPECT_TRUE(Json::accept(raw)) << raw;
}

}  // namespace
}  // namespace berth::worker
