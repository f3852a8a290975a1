#include "worker/template/template_renderer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <string>
#include <utility>

namespace berth::worker {
namespace {

using testing::HasSubstr;

constexpr std::string_view kHello = R"([{"role":"user","content":"x"}])";

TemplateRenderer::Setup setup(std::string source) {
  TemplateRenderer::Setup made;
  made.program = BERTH_TEMPLATE;
  made.chat_template.source = std::move(source);
  made.chat_template.control_texts = {"<s>"};
  return made;
}

std::string shown(const Result<RenderedPrompt>& prompt) {
  if (!prompt) {
    return std::string(reason_info(prompt.error().reason).name) + ": " + prompt.error().message;
  }
  std::string text;
  for (const auto& part : prompt->parts) text += part.literal ? "[" + part.text + "]" : part.text;
  return text;
}

std::string rendered(TemplateRenderer& renderer, std::string_view messages = kHello) {
  return shown(renderer.render({messages, {}, {}, true}));
}

TEST(TemplateRenderer, L26_RendersInItsOwnProcess) {
  TemplateRenderer renderer(setup("{{ messages[0].content }}!"));
  EXPECT_EQ(renderer.pid(), -1) << "starts on first use";
  EXPECT_EQ(rendered(renderer), "x!");
  const auto pid = renderer.pid();
  EXPECT_GT(pid, 0);
  EXPECT_EQ(rendered(renderer, R"([{"role":"user","content":"a<s>b"}])"), "a[<s>]b!");
  EXPECT_EQ(renderer.pid(), pid) << "one process for all requests";
}

TEST(TemplateRenderer, L26_WarmUpWaitsForNothing) {
  TemplateRenderer renderer(setup("{{ messages[0].content }}!"));
  renderer.warm_up();
  const auto pid = renderer.pid();
  EXPECT_GT(pid, 0);
  EXPECT_EQ(rendered(renderer), "x!");
  EXPECT_EQ(renderer.pid(), pid);
}

// What macros within loops hold is never freed; a process that has kept much is replaced in time.
TEST(TemplateRenderer, L26_LeaksEndNoRequest) {
  TemplateRenderer renderer(
      setup("{% for a in [1] %}{% set big = ('x' * 100000) | replace('x', 'y' * 40) %}{% macro m() "
            "%}{{ big }}{% endmacro %}"
            "{% endfor %}{{ messages[0].content }}"));
  for (int i = 0; i < 150; ++i) ASSERT_EQ(rendered(renderer), "x") << i;
}

// What reads the answer must know in which form the prompt asked for calls.
TEST(TemplateRenderer, SaysWhetherItDescribedTheTools) {
  constexpr std::string_view kTools = R"([{"type":"function","function":{"name":"f"}}])";
  const auto described = [](TemplateRenderer::Setup made, std::string_view tools) {
    made.builtin.apply = [](const std::string&, std::span<const FlatMessage> messages,
                            bool) -> Result<std::string> { return messages[0].content; };
    TemplateRenderer renderer(std::move(made));
    const auto prompt = renderer.render({kHello, tools, {}, true});
    EXPECT_TRUE(prompt.has_value());
    return prompt && prompt->tools_described;
  };
  // As DeepSeek V3's: it shows past calls in marks of its own, and no tools.
  const auto* const kCallsOnly =
      "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}"
      "<｜tool▁call▁begin｜>{{ c.function.name }}{{ c.function.arguments }}{% endfor %}"
      "{% endfor %}";
  EXPECT_TRUE(described(setup(kCallsOnly), kTools));
  EXPECT_FALSE(described(setup(kCallsOnly), {}));
  EXPECT_FALSE(described(setup("{{ tools | tojson }}"), kTools));
  EXPECT_TRUE(described(setup("{% if %}<tool_call>"), kTools)) << "libllama's own shows no tools";
  EXPECT_FALSE(described(setup("{% if %}<tool_call>"), {}));
}

TEST(TemplateRenderer, PassesErrorsOn) {
  TemplateRenderer renderer(setup("{{ raise_exception('no') }}"));
  EXPECT_THAT(rendered(renderer),
              HasSubstr("template_failed: The model's chat template failed: no"));
  EXPECT_THAT(rendered(renderer, "[]"), HasSubstr("invalid_argument: "));
  const auto error = renderer.render({"[]", {}, {}, true});
  ASSERT_FALSE(error.has_value());
  EXPECT_EQ(error.error().extras->param, "chat.messages_json");
}

TEST(TemplateRenderer, SaysWhyATemplateCannotBeUsed) {
  TemplateRenderer renderer(setup("{% if %}"));
  EXPECT_THAT(rendered(renderer), HasSubstr("template_failed: "));
  EXPECT_THAT(rendered(renderer), HasSubstr("template_failed: "));
}

// Nothing of it is sent: it would not fit into a frame, and end the process.
TEST(TemplateRenderer, SaysWhatIsTooLarge) {
  TemplateRenderer renderer(setup("{{ messages[0].content }}!"));
  EXPECT_EQ(rendered(renderer), "x!");
  const auto pid = renderer.pid();
  const std::string large(std::size_t{60} << 20U, ' ');
  for (const auto& request :
       {ChatRequest{large, {}, {}, true}, ChatRequest{kHello, large, {}, true},
        ChatRequest{kHello, {}, large, true}}) {
    const auto prompt = renderer.render(request);
    ASSERT_FALSE(prompt.has_value());
    EXPECT_EQ(prompt.error().reason, Reason::kInvalidArgument);
    EXPECT_THAT(prompt.error().message,
                HasSubstr("have 62914560 bytes; at most 16777216 (16 MiB) are allowed."));
    EXPECT_THAT(prompt.error().extras->param, testing::StartsWith("chat."));
  }
  EXPECT_EQ(rendered(renderer), "x!");
  EXPECT_EQ(renderer.pid(), pid);

  auto made = setup(large);
  TemplateRenderer with_large_source(made);
  EXPECT_THAT(rendered(with_large_source),
              HasSubstr("template_failed: The model's chat template has 62914560 bytes; at most "
                        "262144 (256 KiB) are allowed."));
  made.builtin.apply = [](const std::string&, std::span<const FlatMessage> messages,
                          bool) -> Result<std::string> { return messages[0].content; };
  TemplateRenderer with_builtin(std::move(made));
  EXPECT_EQ(rendered(with_builtin), "x");
}

// None may be left out in silence: its text would become a token.
TEST(TemplateRenderer, RefusesMoreControlTextsThanItCanMark) {
  auto made = setup("x");
  for (int i = 0; i < 100001; ++i) made.chat_template.control_texts.push_back(std::to_string(i));
  TemplateRenderer with_many(made);
  with_many.warm_up();
  EXPECT_THAT(rendered(with_many), HasSubstr("template_failed: The model's vocabulary has 100002"));
  EXPECT_EQ(with_many.pid(), -1);

  made.chat_template.control_texts = {std::string(std::size_t{17} << 20U, 'x')};
  TemplateRenderer with_long(made);
  EXPECT_THAT(rendered(with_long), HasSubstr("template_failed: The texts of the model's control"));
  made.named = true;
  TemplateRenderer named(std::move(made));
  EXPECT_THAT(rendered(named), HasSubstr("template_failed: The texts of the model's control"));
}

TEST(TemplateRenderer, SaysThatTheProgramIsMissing) {
  auto made = setup("x");
  made.program = "/nowhere/berth-template";
  TemplateRenderer renderer(std::move(made));
  renderer.warm_up();
  EXPECT_THAT(rendered(renderer), HasSubstr("internal: The program that renders chat templates"));
  EXPECT_THAT(rendered(renderer), HasSubstr("/nowhere/berth-template: No such file"));
}

TEST(TemplateRenderer, UsesABuiltInTemplateByName) {
  auto made = setup("chatml");
  made.named = true;
  made.builtin.apply = [](const std::string& name, std::span<const FlatMessage> messages,
                          bool add) -> Result<std::string> {
    return name + ":" + messages[0].role + "=" + messages[0].content + (add ? "+" : "-");
  };
  TemplateRenderer renderer(std::move(made));
  EXPECT_EQ(rendered(renderer, R"([{"role":"user","content":"a<s>"}])"), "chatml:user=a[<s>]+");
}

TEST(TemplateRenderer, FallsBackToABuiltInTemplate) {
  auto made = setup("{% if %}");
  made.builtin.apply = [](const std::string& source, std::span<const FlatMessage> messages,
                          bool /*add*/) -> Result<std::string> {
    return source + messages[0].content;
  };
  TemplateRenderer renderer(std::move(made));
  EXPECT_EQ(rendered(renderer), "{% if %}x");

  made = setup("{% if %}");
  made.builtin.apply = [](const std::string&, std::span<const FlatMessage>,
                          bool) -> Result<std::string> {
    return fail(Reason::kTemplateFailed, "there is none");
  };
  TemplateRenderer without(std::move(made));
  EXPECT_THAT(rendered(without), HasSubstr("The model's chat template failed: "))
      << "what is wrong with the model's own says more";
}

}  // namespace
}  // namespace berth::worker
