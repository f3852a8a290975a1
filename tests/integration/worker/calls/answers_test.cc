// What an answer consists of, and what it must look like.

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/integration/worker/calls/calling.h"

namespace berth::worker {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

// ChatML as tinychat's own, with tools as Hermes has them and reasoning marks.
constexpr const char* kTemplate = R"(
{%- if tools -%}
<|im_start|>system
# Tools: {% for tool in tools %}{{ tool.function.name }} {% endfor -%}
Answer with <tool_call>{"name": …, "arguments": …}</tool_call>.<|im_end|>
{% endif -%}
{%- for m in messages -%}
<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% if messages[0].content == 'Think!' %}<think>{% endif %}{# it may close with </think> #}
{%- if messages[0].content == 'Think little!' %}<think>{{ '\n \n \n \n \n' }}{% endif %}
{%- endif -%})";

constexpr const char* kTools = R"([
  {"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12}, "days": {"enum": [1, 2, 3]}},
    "required": ["city", "days"]}}},
  {"type": "function", "function": {"name": "clock"}}])";

class Answers : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = new Scratch();
    const auto path = scratch_->write("t.jinja", kTemplate);
    worker_ = new WorkerProcess({tinychat(), {"--context", "1024", "--chat-template", path}});
    const auto event = worker_->wait_loaded();
    ASSERT_TRUE(event && event->has_ready()) << worker_->log();
  }
  static void TearDownTestSuite() {
    delete worker_;
    worker_ = nullptr;
    delete scratch_;
    scratch_ = nullptr;
  }

  static Answer ask(const v1::GenerateRequest& request) {
    auto answer = answer_of(*worker_, request);
    EXPECT_TRUE(answer.outcome.status.ok()) << answer.outcome.status.error_message();
    EXPECT_TRUE(answer.outcome.done.has_value());
    if (!answer.outcome.done) answer.outcome.done.emplace();
    return answer;
  }
  static v1::ErrorDetail refused(const v1::GenerateRequest& request) {
    const auto outcome = worker_->generate(request);
    EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_TRUE(outcome.error.has_value());
    return outcome.error.value_or(v1::ErrorDetail());
  }
  static v1::GenerateRequest with_tools(const std::string& choice) {
    auto request = greedy_chat("What is the weather?");
    request.mutable_chat()->set_tools_json(kTools);
    request.mutable_chat()->set_tool_choice_json(choice);
    request.set_max_tokens(300);
    return request;
  }

  static Scratch* scratch_;
  static WorkerProcess* worker_;
};

Scratch* Answers::scratch_ = nullptr;
WorkerProcess* Answers::worker_ = nullptr;

// --- log probabilities

TEST_F(Answers, EveryTokenHasItsLogprobsAndThoseOfTheLikeliest) {
  auto request = greedy_chat("Who are you?");
  request.set_top_logprobs(3);
  const auto answer = ask(request);
  ASSERT_EQ(answer.logprobs.size(), answer.outcome.ids.size());
  std::string text;
  for (std::size_t i = 0; i < answer.logprobs.size(); ++i) {
    const auto& entry = answer.logprobs[i];
    text += entry.chosen().text();
    EXPECT_EQ(entry.chosen().id(), answer.outcome.ids[i]);
    ASSERT_EQ(entry.top_size(), 3);
    EXPECT_EQ(entry.top(0).id(), entry.chosen().id());  // greedy
    double sum = 0;
    for (const auto& other : entry.top()) sum += std::exp(other.logprob());
    EXPECT_LE(sum, 1.0001);
    EXPECT_GE(entry.top(0).logprob(), entry.top(1).logprob());
    EXPECT_GE(entry.top(1).logprob(), entry.top(2).logprob());
  }
  EXPECT_EQ(text, answer.outcome.text);
}

TEST_F(Answers, LogprobsOfTheChosenTokensOnlyAndNoneUnlessAskedFor) {
  auto request = greedy_chat("Who are you?");
  EXPECT_TRUE(ask(request).logprobs.empty());
  request.set_top_logprobs(0);
  const auto answer = ask(request);
  ASSERT_EQ(answer.logprobs.size(), answer.outcome.ids.size());
  EXPECT_EQ(answer.logprobs[0].top_size(), 0);
}

// --- formats

TEST_F(Answers, AJsonSchemaIsKeptTo) {
  for (const std::uint32_t seed : {0U, 1U, 2U, 3U}) {
    auto request = greedy_chat("My name is Anna.");
    request.mutable_format()->set_json_schema(R"({
      "type": "object",
      "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"}},
      "required": ["name", "age"]})");
    if (seed > 0) {
      request.mutable_sampling()->set_temperature(2);
      request.mutable_sampling()->set_seed(seed);
    }
    const auto answer = ask(request);
    const auto json = Json::parse(answer.outcome.text, nullptr, false);
    ASSERT_TRUE(json.is_object()) << answer.outcome.text;
    EXPECT_EQ(json.size(), 2U);
    ASSERT_TRUE(json["name"].is_string());
    EXPECT_TRUE(json["age"].is_number_integer());
    EXPECT_EQ(answer.outcome.done->finish_reason(), "stop");
  }
}

TEST_F(Answers, AnyJsonObjectAndGrammars) {
  auto request = greedy_prompt("Once upon a time");
  request.mutable_format()->set_json_object(true);
  request.set_max_tokens(60);
  EXPECT_THAT(ask(request).outcome.text, StartsWith("{"));

  request.mutable_format()->set_grammar(R"(root ::= ("yes" | "no") "!")");
  const auto answer = ask(request);
  EXPECT_TRUE(answer.outcome.text == "yes!" || answer.outcome.text == "no!");
  EXPECT_EQ(answer.outcome.done->finish_reason(), "stop");
}

TEST_F(Answers, AKeywordThatNoGrammarHasIsNamedWithItsPlace) {
  auto request = greedy_chat("x");
  request.mutable_format()->set_json_schema(
      R"({"type": "object", "properties": {"a": {"not": {"type": "string"}}}})");
  const auto error = refused(request);
  EXPECT_EQ(error.param(), "format.json_schema");
  EXPECT_THAT(error.message(), HasSubstr("not"));
  EXPECT_THAT(error.message(), HasSubstr("/properties/a"));
}

TEST_F(Answers, AFormatDoesNotGoWithToolsOrWithoutAnEnd) {
  auto request = with_tools("");
  request.mutable_format()->set_json_object(true);
  EXPECT_EQ(refused(request).param(), "format");
  request.mutable_chat()->set_tool_choice_json(R"("none")");
  request.mutable_sampling()->set_ignore_eos(true);
  EXPECT_EQ(refused(request).param(), "sampling.ignore_eos");
}

// --- tools

TEST_F(Answers, RequiredCallsOneOfTheTools) {
  const auto answer = ask(with_tools(R"("required")"));
  EXPECT_EQ(answer.outcome.done->finish_reason(), "tool_calls") << answer.outcome.text;
  ASSERT_FALSE(answer.calls.empty());
  for (const auto& call : answer.calls) {
    EXPECT_THAT(call.id(), StartsWith("call_"));
    const auto arguments = Json::parse(call.arguments(), nullptr, false);
    ASSERT_TRUE(arguments.is_object()) << call.arguments();
    if (call.name() == "weather") {
      EXPECT_TRUE(arguments["city"].is_string());
      EXPECT_TRUE(arguments["days"].is_number_integer());
    } else {
      EXPECT_EQ(call.name(), "clock");
    }
  }
  EXPECT_EQ(answer.outcome.text, "");
}

TEST_F(Answers, ANamedFunctionIsCalledOnce) {
  const auto request = with_tools(R"({"type": "function", "function": {"name": "weather"}})");
  const auto answer = ask(request);
  ASSERT_EQ(answer.calls.size(), 1U) << answer.outcome.text;
  EXPECT_EQ(answer.calls[0].name(), "weather");
  const auto arguments = Json::parse(answer.calls[0].arguments(), nullptr, false);
  ASSERT_TRUE(arguments.is_object()) << answer.calls[0].arguments();
  EXPECT_LE(arguments["city"].get<std::string>().size(), 12U * 4);
  const auto again = ask(request);
  ASSERT_EQ(again.calls.size(), 1U);
  EXPECT_EQ(again.calls[0].arguments(), answer.calls[0].arguments());
  EXPECT_NE(again.calls[0].id(), answer.calls[0].id());
}

TEST_F(Answers, RawAnswersComeAsTheModelWritesThem) {
  auto request = with_tools(R"({"type": "function", "function": {"name": "weather"}})");
  request.mutable_chat()->set_raw_answer(true);
  const auto answer = ask(request);
  EXPECT_TRUE(answer.calls.empty());
  EXPECT_THAT(answer.outcome.text, StartsWith("<tool_call>\n{"));
  EXPECT_THAT(answer.outcome.text, HasSubstr("</tool_call>"));
  EXPECT_EQ(answer.outcome.done->finish_reason(), "stop");
}

TEST_F(Answers, WithNoneTheModelDoesNotHearOfTheTools) {
  const auto without = ask(greedy_chat("Who are you?"));
  auto request = greedy_chat("Who are you?");
  request.mutable_chat()->set_tools_json(kTools);
  request.mutable_chat()->set_tool_choice_json(R"("none")");
  const auto none = ask(request);
  EXPECT_EQ(none.outcome.text, without.outcome.text);
  EXPECT_EQ(none.outcome.done->usage().prompt_tokens(),
            without.outcome.done->usage().prompt_tokens());
  request.mutable_chat()->clear_tool_choice_json();
  EXPECT_GT(ask(request).outcome.done->usage().prompt_tokens(),
            without.outcome.done->usage().prompt_tokens());
}

TEST_F(Answers, UnknownToolsAreRefused) {
  auto request = with_tools(R"({"type": "function", "function": {"name": "wether"}})");
  const auto error = refused(request);
  EXPECT_EQ(error.param(), "chat.tool_choice_json");
  request.mutable_chat()->clear_tools_json();
  EXPECT_EQ(refused(request).param(), "chat.tool_choice_json");
}

// --- reasoning

TEST_F(Answers, ReasoningIsPartedFromTheAnswer) {
  auto request = greedy_chat("Who are you?");
  request.mutable_format()->set_grammar(
      R"(root ::= "<think>\nThey ask.\n</think>\n\nI am small.")");
  const auto answer = ask(request);
  EXPECT_EQ(answer.reasoning, "They ask.");
  EXPECT_EQ(answer.outcome.text, "I am small.");
  EXPECT_EQ(answer.outcome.ids.size(), answer.outcome.done->usage().completion_tokens());

  request.mutable_chat()->set_raw_answer(true);
  EXPECT_EQ(ask(request).outcome.text, "<think>\nThey ask.\n</think>\n\nI am small.");
}

TEST_F(Answers, AFormatDoesNotBindTheReasoningThatThePromptOpens) {
  auto request = greedy_chat("Think!");
  request.set_max_tokens(30);
  request.mutable_format()->set_grammar(R"(root ::= "no")");
  const auto answer = ask(request);
  EXPECT_EQ(answer.outcome.text, "");
  EXPECT_FALSE(answer.reasoning.empty());
}

// The model is made to write the closing mark: each of its tokens is wanted a little less than the
// one before, and not at all once it is there.
TEST_F(Answers, AFormatBindsFromTheEndOfTheReasoningOn) {
  auto request = greedy_chat("Think little!");
  request.set_max_tokens(30);
  request.mutable_format()->set_grammar(R"(root ::= "no" " way"? "!")");
  auto& sampling = *request.mutable_sampling();
  sampling.set_repetition_penalty(100);
  sampling.set_penalty_last_tokens(6);  // those of <think> are further back
  v1::TokenizeRequest mark;
  mark.set_text("</think>");
  mark.set_add_special(false);
  const auto tokens = reply(*worker_, &v1::Worker::Stub::Tokenize, mark).response;
  ASSERT_GT(tokens.ids_size(), 0);
  ASSERT_LE(tokens.ids_size(), 4);
  for (int i = 0; i < tokens.ids_size(); ++i) {
    auto& bias = *sampling.add_logit_bias();
    bias.set_token(tokens.ids(i));
    bias.set_bias(100 - 25 * static_cast<float>(i));
  }
  const auto answer = ask(request);
  EXPECT_THAT(answer.outcome.text, testing::AnyOf("no!", "no way!"));
  EXPECT_EQ(answer.reasoning, "");
  EXPECT_EQ(answer.outcome.done->finish_reason(), "stop");
  request.mutable_chat()->set_raw_answer(true);
  EXPECT_THAT(ask(request).outcome.text, StartsWith("</think>no"));
}

TEST(AnswersInHarmony, AFormatIsKeptToHoweverTheAnswerBegins) {
  const Scratch scratch;
  const auto path = scratch.write("t.jinja", R"(
{%- for m in messages -%}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{%- endfor -%}
{%- if add_generation_prompt -%}<|start|>assistant{%- endif -%}{# <|channel|> #})");
  WorkerProcess worker({tinychat(), {"--context", "512", "--chat-template", path}});
  ASSERT_TRUE(worker.wait_loaded().has_value());
  int ended = 0;
  for (const std::uint32_t seed : {0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U}) {
    auto request = greedy_chat("Who are you?");
    request.mutable_format()->set_grammar(R"(root ::= "yes" | "no")");
    request.set_max_tokens(120);
    if (seed > 0) {
      request.mutable_sampling()->set_temperature(2);
      request.mutable_sampling()->set_seed(seed);
    }
    const auto answer = answer_of(worker, request);
    ASSERT_TRUE(answer.outcome.done.has_value()) << answer.outcome.status.error_message();
    const auto& text = answer.outcome.text;
    if (answer.outcome.done->finish_reason() == "stop") {
      EXPECT_TRUE(text == "yes" || text == "no") << text;
      ++ended;
    } else {
      EXPECT_EQ(text, "");  // it still thinks
    }
  }
  EXPECT_GT(ended, 0);
}

}  // namespace
}  // namespace berth::worker
