// What a program is asked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "tests/unit/rpc/command_request_harness.h"

namespace berth::rpc {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(CommandRequestTest, L27_AGenerationIsAskedForInOpenAisWords) {
  core::GenerateRequest request;
  core::ChatInput chat;
  chat.messages_json = R"([{"role":"user","content":"ü\u00fc","n":18446744073709551615}])";
  chat.tools_json = R"([{"type":"function"}])";
  chat.tool_choice_json = R"("auto")";
  chat.template_variables_json = R"({"enable_thinking":false})";
  request.input = chat;
  request.sampling.temperature = 0.1F;
  request.sampling.seed = 4294967295U;
  request.sampling.repetition_penalty = 1.1F;
  request.sampling.logit_bias = {{7, -200}, {8, 0.5F}};
  request.sampling.ignore_eos = true;
  request.max_tokens = 5;
  request.stop = {"\n", "é"};
  request.format = core::JsonSchemaFormat{R"({"type":"object"})"};
  generate(request);
  EXPECT_EQ(wire_.path, "/v1/chat/completions");
  EXPECT_EQ(wire_.body,
            R"({"model":"their \"name\"",)"
            R"("messages":[{"role":"user","content":"ü\u00fc","n":18446744073709551615}],)"
            R"("tools":[{"type":"function"}],"tool_choice":"auto",)"
            R"("chat_template_kwargs":{"enable_thinking":false},)"
            R"("response_format":{"type":"json_schema","json_schema":)"
            R"({"name":"answer","strict":true,"schema":{"type":"object"}}},)"
            R"("temperature":0.1,"seed":4294967295,"repeat_penalty":1.1,"repetition_penalty":1.1,)"
            R"("ignore_eos":true,"logit_bias":{"7":-100,"8":0.5},"max_tokens":5,)"
            R"("stop":["\n","é"],"stream":true,"stream_options":{"include_usage":true}})");

  request = {};
  request.input = core::TokenInput{{1, 2}};
  generate(request);
  EXPECT_EQ(wire_.path, "/v1/completions");
  EXPECT_THAT(wire_.body, HasSubstr(R"(,"prompt":[1,2],)"));
}

TEST_F(CommandRequestTest, L27_WhatNoProgramCanBeAskedForIsRefused) {
  core::GenerateRequest grammar = prompt("x");
  grammar.format = core::GrammarFormat{"root ::= \"a\""};
  core::GenerateRequest logprobs = prompt("x");
  logprobs.top_logprobs = 1;
  core::GenerateRequest raw;
  core::ChatInput chat;
  chat.messages_json = "[]";
  chat.raw_answer = true;
  raw.input = chat;
  for (const auto& request : {grammar, logprobs, raw}) {
    generate(request);
    ASSERT_TRUE(events_->end && !*events_->end);
    EXPECT_EQ(events_->end->error().reason, Reason::kInvalidArgument);
  }
}

TEST_F(CommandRequestTest, L27_NoMemberCanBePutIntoTheBodyOfAProgram) {
  const auto says = [this](const core::GenerateRequest& request) {
    wire_.body = "nothing";
    generate(request);
    EXPECT_EQ(wire_.body, "nothing");
    if (!events_->end || *events_->end || !events_->end->error().extras) return std::string();
    EXPECT_EQ(events_->end->error().reason, Reason::kInvalidArgument);
    return events_->end->error().extras->param;
  };
  const auto chat = [&says](const core::ChatInput& input) {
    core::GenerateRequest request;
    request.input = input;
    return says(request);
  };
  for (const char* const messages :
       {R"([],"model":"other")", "[", "[1]]", "{}", "\"a\"", "null", " ", "[1] 2", "[01]"}) {
    EXPECT_EQ(chat({messages}), "chat.messages_json") << messages;
  }
  EXPECT_EQ(chat({std::string(200, '[') + std::string(200, ']')}), "chat.messages_json");
  for (const char* const tools : {R"([],"model":"other")", "{}", "[1,"}) {
    EXPECT_EQ(chat({"[]", tools}), "chat.tools_json") << tools;
  }
  for (const char* const choice : {R"("auto","model":"other")", "auto", "1", "[]"}) {
    EXPECT_EQ(chat({"[]", "", true, choice}), "chat.tool_choice_json") << choice;
  }
  for (const char* const variables : {R"({},"model":"other")", "[]", "{1:2}"}) {
    EXPECT_EQ(chat({"[]", "", true, "", variables}), "chat.template_variables_json") << variables;
  }
  for (const char* const schema : {R"({}},"model":"other","x":{"y":{)", "[]", "1", "t"}) {
    core::GenerateRequest request = prompt("x");
    request.format = core::JsonSchemaFormat{schema};
    EXPECT_EQ(says(request), "format.json_schema") << schema;
  }
}

TEST_F(CommandRequestTest, L27_WhatIsPassedOnEndsWhenItIsComplete) {
  forward();
  wire_.head(200, kStream);
  wire_.piece("data: 1");
  EXPECT_FALSE(passed_->end);
  wire_.piece("data: [DONE]");
  EXPECT_EQ(wire_.sink, nullptr) << "its connection may stay open for long";
  EXPECT_TRUE(passed_->end && *passed_->end);
}

TEST_F(CommandRequestTest, L27_ARequestIsPassedOnWithTheProgramsNameOfItsModel) {
  forward();
  EXPECT_EQ(wire_.path, "/v1/embeddings");
  EXPECT_EQ(wire_.body, R"({"model":"their \"name\"","input":"a"})");
  wire_.sink->on_head({503, "application/json", "", "5"});
  EXPECT_EQ(passed_->head->status, 503U);
  EXPECT_EQ(passed_->head->retry_after, "5");
  passed_->room = false;
  wire_.piece("abc");
  EXPECT_FALSE(wire_.room);
  call_->resume();
  clock_.settle();
  EXPECT_TRUE(wire_.room);
  wire_.piece("d");
  wire_.end({});
  EXPECT_EQ(passed_->body, "abcd");
  EXPECT_FALSE(passed_->end) << "no room";
  call_->resume();
  clock_.settle();
  EXPECT_TRUE(passed_->end && *passed_->end);
}

TEST_F(CommandRequestTest, L27_HeadersOfAProgramAreNotTrusted) {
  forward();
  wire_.sink->on_head({200, "a\r\nSet-Cookie: b", "identity", std::string(300, '1')});
  EXPECT_EQ(passed_->head->content_type, "");
  EXPECT_EQ(passed_->head->retry_after, "");
  forward();
  wire_.sink->on_head({200, "application/json", "gzip", ""});
  EXPECT_FALSE(passed_->head);
  ASSERT_TRUE(passed_->end && !*passed_->end);
  EXPECT_EQ(passed_->end->error().reason, Reason::kInternal);
  EXPECT_EQ(wire_.sink, nullptr);
}

TEST_F(CommandRequestTest, L27_VectorsAreAskedForInOpenAisWords) {
  core::EmbedRequest request;
  request.inputs = {core::PromptInput{"\"a\""}, core::PromptInput{"b"}};
  request.dimensions = 2;
  const auto answered = embed(request, 200,
                              R"({"data":[{"index":1,"embedding":[0,-2.5]},)"
                              R"({"index":0,"embedding":[3,4,9]}],"usage":{"prompt_tokens":5}})");
  EXPECT_EQ(wire_.path, "/v1/embeddings");
  EXPECT_EQ(wire_.body,
            R"({"model":"their \"name\"","input":["\"a\"","b"],"encoding_format":"float",)"
            R"("dimensions":2})");
  ASSERT_TRUE(answered) << answered.error().message;
  EXPECT_EQ(answered->prompt_tokens, 5U);
  EXPECT_THAT(answered->embeddings[0].values, ElementsAre(0.6F, 0.8F)) << "cut, then normalised";
  EXPECT_THAT(answered->embeddings[1].values, ElementsAre(0, -1));

  request.inputs = {core::TokenInput{{1, 2}}, core::TokenInput{{3}}};
  request.normalize = false;
  EXPECT_TRUE(embed(request, 200, R"({"data":[{"embedding":[1]},{"embedding":[2]}]})"));
  EXPECT_THAT(wire_.body, HasSubstr(R"("input":[[1,2],[3]])"));
}

TEST_F(CommandRequestTest, L27_WhatAreNoVectorsIsAnError) {
  core::EmbedRequest request;
  request.inputs = {core::PromptInput{"a"}, core::PromptInput{"b"}};
  for (const char* const body :
       {"", "{}", R"({"data":[{"embedding":[1]}]})",
        R"({"data":[{"embedding":[1]},{"embedding":[]}]})",
        R"({"data":[{"embedding":[1]},{"embedding":["x"]}]})",
        R"({"data":[{"embedding":[1]},{"embedding":[1e39]}]})",
        R"({"data":[{"index":1,"embedding":[1]},{"index":1,"embedding":[1]}]})",
        R"({"data":[{"index":2,"embedding":[1]},{"index":0,"embedding":[1]}]})"}) {
    const auto answered = embed(request, 200, body);
    ASSERT_FALSE(answered) << body;
    EXPECT_EQ(answered.error().reason, Reason::kInternal) << body;
  }
  EXPECT_EQ(embed(request, 400, R"({"error":{"message":"m"}})").error().reason,
            Reason::kInvalidArgument);
  request.inputs.emplace_back(core::TokenInput{{1}});
  EXPECT_EQ(embed(request, 200, "{}").error().reason, Reason::kInvalidArgument) << "both kinds";
}

TEST_F(CommandRequestTest, L27_AProgramIsNotAskedForItsTokens) {
  std::optional<Result<core::TokenCount>> count;
  call_ = client_->count_tokens({}, clock_.now() + 1min,
                                [&](Result<core::TokenCount> got) { count = std::move(got); });
  clock_.settle();
  ASSERT_TRUE(count && !*count);
  EXPECT_EQ(count->error().reason, Reason::kInvalidArgument);
}

}  // namespace
}  // namespace berth::rpc
