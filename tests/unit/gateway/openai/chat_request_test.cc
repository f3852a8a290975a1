#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "tests/unit/gateway/openai/read.h"

namespace berth::gateway::openai {
namespace {

TextRequest read_ok(std::string_view members) {
  const Result<TextRequest> request = read(read_chat_request, chat_body(members));
  EXPECT_TRUE(request) << members << ": " << (request ? "" : request.error().message);
  return request ? *request : TextRequest{};
}

const core::ChatInput& chat(const TextRequest& request) {
  return std::get<core::ChatInput>(request.generate.input);
}

TEST(ChatRequest, ALeastRequestHasOnlyDefaults) {
  const TextRequest request = read_ok("");
  EXPECT_EQ(request.generate.model, "m");
  EXPECT_EQ(chat(request).messages_json, R"([{"role":"user","content":"Hi"}])");
  EXPECT_EQ(chat(request).tools_json, "");
  EXPECT_EQ(chat(request).tool_choice_json, "");
  EXPECT_EQ(chat(request).template_variables_json, "");
  EXPECT_TRUE(chat(request).add_generation_prompt);
  EXPECT_FALSE(request.stream);
  EXPECT_FALSE(request.include_usage);
  EXPECT_TRUE(request.parallel_tool_calls);
  EXPECT_FALSE(request.generate.max_tokens);
  EXPECT_FALSE(request.generate.top_logprobs);
  EXPECT_FALSE(request.generate.sampling.temperature);
  EXPECT_FALSE(request.generate.sampling.seed);
  EXPECT_TRUE(request.generate.stop.empty());
  EXPECT_TRUE(std::holds_alternative<std::monostate>(request.generate.format));
}

TEST(ChatRequest, NullIsAbsentEverywhere) {
  read_ok(R"("stream":null,"stream_options":null,"stop":null,"seed":null,"temperature":null,
             "logit_bias":null,"logprobs":null,"top_logprobs":null,"max_tokens":null,
             "max_completion_tokens":null,"response_format":null,"tools":null,"tool_choice":null,
             "parallel_tool_calls":null,"n":null,"user":null,"reasoning_effort":null,
             "chat_template_kwargs":null,"modalities":null,"audio":null,"functions":null)");
}

TEST(ChatRequest, UnknownFieldsAreIgnored) {
  read_ok(R"("store":true,"metadata":{"a":"b"},"service_tier":"auto","frobnicate":[1,{"x":2}],
             "best_of":2,"suffix":"x","echo":true)");
}

TEST(ChatRequest, SamplingIsRead) {
  const core::Sampling sampling =
      read_ok(R"("temperature":0.5,"top_p":0.9,"top_k":20,"min_p":0.1,"presence_penalty":-1,
                 "frequency_penalty":2,"repeat_penalty":1.5,"seed":7,"typical_p":0.5,
                 "ignore_eos":true,"mirostat":2,"logit_bias":{"5":-100,"7":1.5})")
          .generate.sampling;
  EXPECT_EQ(sampling.temperature, 0.5F);
  EXPECT_EQ(sampling.top_p, 0.9F);
  EXPECT_EQ(sampling.top_k, 20U);
  EXPECT_EQ(sampling.min_p, 0.1F);
  EXPECT_EQ(sampling.presence_penalty, -1.0F);
  EXPECT_EQ(sampling.frequency_penalty, 2.0F);
  EXPECT_EQ(sampling.repetition_penalty, 1.5F);
  EXPECT_EQ(sampling.seed, 7U);
  EXPECT_EQ(sampling.typical_p, 0.5F);
  EXPECT_EQ(sampling.ignore_eos, true);
  EXPECT_EQ(sampling.mirostat, 2U);
  ASSERT_EQ(sampling.logit_bias.size(), 2U);
  EXPECT_EQ(sampling.logit_bias[0].token, 5);
  EXPECT_EQ(sampling.logit_bias[0].bias, -100.0F);
  EXPECT_EQ(sampling.logit_bias[1].token, 7);
  EXPECT_EQ(read_ok(R"("repetition_penalty":1.25)").generate.sampling.repetition_penalty, 1.25F);
}

TEST(ChatRequest, WhatOtherServersClientsSendForOffAndUnbounded) {
  EXPECT_EQ(read_ok(R"("top_k":-1)").generate.sampling.top_k, 0U);
  EXPECT_FALSE(read_ok(R"("max_tokens":-1)").generate.max_tokens);
  EXPECT_FALSE(read_ok(R"("seed":-1)").generate.sampling.seed);
  const auto top_p = read_ok(R"("top_p":0)").generate.sampling.top_p;
  ASSERT_TRUE(top_p);
  EXPECT_GT(*top_p, 0.0F);
  EXPECT_LT(*top_p, 0.001F);
  EXPECT_EQ(read_ok(R"("max_tokens":100.0)").generate.max_tokens, 100U);
}

TEST(ChatRequest, SeedsOf64BitsAreFoldedAlwaysAlike) {
  const auto seed = [](const std::string& text) {
    return read_ok("\"seed\":" + text).generate.sampling.seed.value_or(0);
  };
  EXPECT_EQ(seed("4294967295"), 4294967295U) << "what fits stays";
  EXPECT_EQ(seed("4294967296"), 1U);
  EXPECT_EQ(seed("9223372036854775807"), 0x7FFFFFFFU ^ 0xFFFFFFFFU);
  EXPECT_EQ(seed("18446744073709551614"), 0xFFFFFFFFU ^ 0xFFFFFFFEU);
  EXPECT_EQ(seed("-2"), 0xFFFFFFFFU ^ 0xFFFFFFFEU);
}

TEST(ChatRequest, BoundsAreRead) {
  const TextRequest request = read_ok(
      R"("stream":true,"stream_options":{"include_usage":true},"stop":["a","b"],"max_tokens":5,
         "n":1,"user":"u","logprobs":true,"top_logprobs":3,"parallel_tool_calls":false)");
  EXPECT_TRUE(request.stream);
  EXPECT_TRUE(request.include_usage);
  EXPECT_EQ(request.generate.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request.generate.max_tokens, 5U);
  EXPECT_EQ(request.generate.user, "u");
  EXPECT_EQ(request.generate.top_logprobs, 3U);
  EXPECT_FALSE(request.parallel_tool_calls);
  EXPECT_EQ(read_ok(R"("stop":"a")").generate.stop, std::vector<std::string>{"a"});
  EXPECT_EQ(read_ok(R"("logprobs":true)").generate.top_logprobs, 0U);
  EXPECT_FALSE(read_ok(R"("logprobs":false,"top_logprobs":0)").generate.top_logprobs);
  EXPECT_EQ(read_ok(R"("max_tokens":9,"max_completion_tokens":5)").generate.max_tokens, 5U);
  EXPECT_EQ(read_ok(R"("max_completion_tokens":6)").generate.max_tokens, 6U);
}

TEST(ChatRequest, MessagesArePassedOn) {
  const std::string messages =
      R"([{"role":"system","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},)"
      R"({"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function",)"
      R"("function":{"name":"f","arguments":"{}"}}]},)"
      R"({"role":"tool","tool_call_id":"x","content":"é\u0000😀","extra":{"z":1,"a":[]}}])";
  const auto request = read(read_chat_request, R"({"model":"m","messages":)" + messages + "}");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(chat(*request).messages_json, messages);
}

TEST(ChatRequest, ToolsAreRead) {
  const std::string tools =
      R"([{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}])";
  EXPECT_EQ(chat(read_ok("\"tools\":" + tools)).tools_json, tools);
  EXPECT_EQ(chat(read_ok(R"("tools":[])")).tools_json, "");
  EXPECT_EQ(chat(read_ok(R"("tool_choice":"none")")).tool_choice_json, R"("none")");
  EXPECT_EQ(chat(read_ok("\"tools\":" + tools + R"(,"tool_choice":"required")")).tool_choice_json,
            R"("required")");
  const std::string named = R"({"type":"function","function":{"name":"f"}})";
  EXPECT_EQ(chat(read_ok("\"tools\":" + tools + ",\"tool_choice\":" + named)).tool_choice_json,
            named);
}

TEST(ChatRequest, FormatsAreRead) {
  using std::get_if;
  EXPECT_TRUE(std::holds_alternative<std::monostate>(
      read_ok(R"("response_format":{"type":"text"})").generate.format));
  EXPECT_TRUE(std::holds_alternative<core::JsonObjectFormat>(
      read_ok(R"("response_format":{"type":"json_object"})").generate.format));
  const auto schema =
      read_ok(R"("response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,
                 "schema":{"type":"object","properties":{"z":{},"a":{"maximum":0.5}}}}})")
          .generate.format;
  ASSERT_TRUE(get_if<core::JsonSchemaFormat>(&schema));
  EXPECT_EQ(get_if<core::JsonSchemaFormat>(&schema)->schema,
            R"({"type":"object","properties":{"z":{},"a":{"maximum":5E-1}}})");
  const auto grammar = read_ok(R"("grammar":"root ::= \"a\"")").generate.format;
  ASSERT_TRUE(get_if<core::GrammarFormat>(&grammar));
  EXPECT_EQ(get_if<core::GrammarFormat>(&grammar)->gbnf, R"(root ::= "a")");
}

TEST(ChatRequest, TheTemplatesVariablesAreRead) {
  EXPECT_EQ(
      chat(read_ok(R"("chat_template_kwargs":{"enable_thinking":false})")).template_variables_json,
      R"({"enable_thinking":false})");
  EXPECT_EQ(chat(read_ok(R"("reasoning_effort":"high")")).template_variables_json,
            R"({"reasoning_effort":"high"})");
  EXPECT_EQ(chat(read_ok(R"("reasoning_effort":"none")")).template_variables_json,
            R"({"reasoning_effort":"none","enable_thinking":false})");
  EXPECT_EQ(chat(read_ok(R"("reasoning_effort":"low","chat_template_kwargs":
                            {"reasoning_effort":"high"})"))
                .template_variables_json,
            R"({"reasoning_effort":"high"})");
  EXPECT_FALSE(chat(read_ok(R"("add_generation_prompt":false)")).add_generation_prompt);
}

class ChatRefusal : public testing::TestWithParam<Refusal> {};

TEST_P(ChatRefusal, NamesTheField) {
  expect_refused(read(read_chat_request, chat_body(GetParam().body)), GetParam());
}

// NOLINTBEGIN(modernize-use-designated-initializers)
INSTANTIATE_TEST_SUITE_P(
    Fields, ChatRefusal,
    testing::ValuesIn(std::vector<Refusal>{
        {"ModelType", R"("model":5)", "model"},
        {"ModelEmpty", R"("model":"")", "model"},
        {"ModelNull", R"("model":null)", "model"},
        {"StreamType", R"("stream":"yes")", "stream"},
        {"StreamOptionsType", R"("stream_options":1)", "stream_options"},
        {"IncludeUsageType", R"("stream_options":{"include_usage":1})",
         "stream_options.include_usage"},
        {"StopType", R"("stop":5)", "stop"},
        {"StopEmpty", R"("stop":"")", "stop"},
        {"StopElement", R"("stop":["a",5])", "stop[1]"},
        {"StopElementEmpty", R"("stop":["a",""])", "stop[1]"},
        {"StopMany", R"("stop":["","","","","","","","","","","","","","","","",""])", "stop"},
        {"SeedType", R"("seed":"1")", "seed"},
        {"SeedFraction", R"("seed":1.5)", "seed"},
        {"SeedHuge", R"("seed":99999999999999999999)", "seed"},
        {"TemperatureType", R"("temperature":"hot")", "temperature"},
        {"TemperatureNegative", R"("temperature":-0.1)", "temperature"},
        {"TemperatureHuge", R"("temperature":101)", "temperature"},
        {"TemperatureInfinite", R"("temperature":1e999)", "temperature"},
        {"TopP", R"("top_p":1.01)", "top_p"},
        {"TopK", R"("top_k":-2)", "top_k"},
        {"TopKFraction", R"("top_k":1.5)", "top_k"},
        {"MinP", R"("min_p":-1)", "min_p"},
        {"TypicalP", R"("typical_p":0)", "typical_p"},
        {"TypicalPTiny", R"("typical_p":1e-300)", "typical_p"},
        {"PresencePenalty", R"("presence_penalty":2.1)", "presence_penalty"},
        {"FrequencyPenalty", R"("frequency_penalty":-2.1)", "frequency_penalty"},
        {"RepeatPenalty", R"("repeat_penalty":0)", "repeat_penalty"},
        {"RepetitionPenalty", R"("repetition_penalty":-1)", "repetition_penalty"},
        {"LogitBiasType", R"("logit_bias":[1])", "logit_bias"},
        {"LogitBiasKey", R"("logit_bias":{"a":1})", "logit_bias"},
        {"LogitBiasKeyNegative", R"("logit_bias":{"-1":1})", "logit_bias"},
        {"LogitBiasKeyHuge", R"("logit_bias":{"4294967296":1})", "logit_bias"},
        {"LogitBiasValue", R"("logit_bias":{"5":101})", "logit_bias.5"},
        {"LogitBiasNull", R"("logit_bias":{"5":null})", "logit_bias.5"},
        {"LogitBiasTwice", R"("logit_bias":{"5":1,"05":2})", "logit_bias.05"},
        {"LogprobsType", R"("logprobs":2)", "logprobs"},
        {"TopLogprobsAlone", R"("top_logprobs":2)", "top_logprobs"},
        {"TopLogprobsMany", R"("logprobs":true,"top_logprobs":21)", "top_logprobs"},
        {"MaxTokensZero", R"("max_tokens":0)", "max_tokens"},
        {"MaxTokensNegative", R"("max_tokens":-2)", "max_tokens"},
        {"MaxTokensHuge", R"("max_tokens":1099511627776)", "max_tokens"},
        {"MaxTokensType", R"("max_tokens":"5")", "max_tokens"},
        {"MaxCompletionTokens", R"("max_completion_tokens":0)", "max_completion_tokens"},
        {"N", R"("n":2)", "n"},
        {"NNegative", R"("n":-1)", "n"},
        {"NType", R"("n":"1")", "n"},
        {"UserType", R"("user":5)", "user"},
        {"FormatType", R"("response_format":"json")", "response_format"},
        {"FormatKind", R"("response_format":{"type":"xml"})", "response_format.type"},
        {"FormatKindMissing", R"("response_format":{})", "response_format.type"},
        {"SchemaMissing", R"("response_format":{"type":"json_schema"})",
         "response_format.json_schema"},
        {"SchemaOfSchema", R"("response_format":{"type":"json_schema","json_schema":{}})",
         "response_format.json_schema.schema"},
        {"SchemaType", R"("response_format":{"type":"json_schema","json_schema":{"schema":"x"}})",
         "response_format.json_schema.schema"},
        {"SchemaStrict",
         R"("response_format":{"type":"json_schema","json_schema":{"schema":{},"strict":1}})",
         "response_format.json_schema.strict"},
        {"FormatTwice", R"("grammar":"root ::= \"a\"","response_format":{"type":"json_object"})",
         "response_format"},
        {"FormatBesideTools",
         R"("tools":[{"type":"function","function":{"name":"f"}}],
            "response_format":{"type":"json_object"})",
         "response_format"},
        {"ToolsType", R"("tools":{})", "tools"},
        {"ToolType", R"("tools":[5])", "tools[0]"},
        {"ToolKind", R"("tools":[{"type":"web_search"}])", "tools[0].type"},
        {"ToolFunction", R"("tools":[{"type":"function"}])", "tools[0].function"},
        {"ToolName", R"("tools":[{"type":"function","function":{}}])", "tools[0].function.name"},
        {"ToolParameters",
         R"("tools":[{"type":"function","function":{"name":"f","parameters":5}}])",
         "tools[0].function.parameters"},
        {"ChoiceWord", R"("tool_choice":"maybe")", "tool_choice"},
        {"ChoiceType", R"("tool_choice":5)", "tool_choice"},
        {"ChoiceRequiredWithoutTools", R"("tool_choice":"required")", "tool_choice"},
        {"ChoiceNoFunction", R"("tool_choice":{"type":"allowed_tools"})", "tool_choice"},
        {"ChoiceUnknown",
         R"("tools":[{"type":"function","function":{"name":"f"}}],
            "tool_choice":{"type":"function","function":{"name":"g"}})",
         "tool_choice.function.name"},
        {"ParallelType", R"("parallel_tool_calls":"no")", "parallel_tool_calls"},
        {"Functions", R"("functions":[])", "functions"},
        {"FunctionCall", R"("function_call":"auto")", "function_call"},
        {"Audio", R"("audio":{"voice":"x"})", "audio"},
        {"Modalities", R"("modalities":["text","audio"])", "modalities"},
        {"Effort", R"("reasoning_effort":5)", "reasoning_effort"},
        {"Variables", R"("chat_template_kwargs":[])", "chat_template_kwargs"},
        {"MessagesNull", R"("messages":null)", "messages"},
        {"MessagesType", R"("messages":"Hi")", "messages"},
        {"MessagesEmpty", R"("messages":[])", "messages"},
        {"MessageType", R"("messages":["Hi"])", "messages[0]"},
        {"RoleMissing", R"("messages":[{"content":"Hi"}])", "messages[0].role"},
        {"RoleType", R"("messages":[{"role":1,"content":"Hi"}])", "messages[0].role"},
        {"ContentType", R"("messages":[{"role":"user","content":5}])", "messages[0].content"},
        {"PartType", R"("messages":[{"role":"user","content":["Hi"]}])", "messages[0].content[0]"},
        {"PartKindMissing", R"("messages":[{"role":"user","content":[{"text":"Hi"}]}])",
         "messages[0].content[0].type"},
        {"PartText", R"("messages":[{"role":"user","content":[{"type":"text","text":1}]}])",
         "messages[0].content[0].text"},
        {"PartTextMissing", R"("messages":[{"role":"user","content":[{"type":"text"}]}])",
         "messages[0].content[0].text"},
        {"Image",
         R"("messages":[{"role":"user","content":[{"type":"text","text":"What is this?"},
            {"type":"image_url","image_url":{"url":"data:"}}]}])",
         "messages[0].content[1].type"},
        {"SecondMessage",
         R"("messages":[{"role":"user","content":"a"},{"role":"user","content":{}}])",
         "messages[1].content"},
        {"ToolCallsType", R"("messages":[{"role":"assistant","tool_calls":5}])",
         "messages[0].tool_calls"},
    }),
    [](const testing::TestParamInfo<Refusal>& test) { return std::string(test.param.name); });
// NOLINTEND(modernize-use-designated-initializers)

}  // namespace
}  // namespace berth::gateway::openai
