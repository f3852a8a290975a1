#include "supervisor/gateway/openai/answer_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/base64.h"
#include "common/version.h"
#include "supervisor/gateway/openai/embedding_answer.h"

namespace berth::gateway::openai {
namespace {

namespace json = boost::json;

AnswerHead head() {
  AnswerHead head;
  head.request_id = "r-1";
  head.model = "demo";
  head.created = 1700000000;
  return head;
}

Finished finished(std::string reason = "stop") {
  Finished end;
  end.done.finish_reason = std::move(reason);
  end.done.usage = {10, 4, 6, 3, 2};
  end.done.timings = {1000, 2000, 8000, 40000, 9000};
  return end;
}

core::TokenEvent text(std::string piece) {
  core::TokenEvent token;
  token.text = std::move(piece);
  return token;
}

core::TokenEvent call(std::uint32_t index, std::string id, std::string name,
                      std::string arguments) {
  core::TokenEvent token;
  token.tool_calls.push_back({index, std::move(id), std::move(name), std::move(arguments)});
  return token;
}

core::TokenEvent with_logprobs(std::string piece) {
  core::TokenEvent token = text(piece);
  token.logprobs.push_back(
      {{7, -0.5F, piece},
       {{7, -0.5F, piece}, {8, -std::numeric_limits<float>::infinity(), "\xC3"}}});
  return token;
}

// What every piece of a chat begins with.
std::string chunk(const std::string& rest) {
  return R"(data: {"id":"chatcmpl-r-1","object":"chat.completion.chunk","created":1700000000,)"
         R"("model":"demo","system_fingerprint":"berth-)" +
         std::string(kBuildId) + R"(",)" + rest + "}\n\n";
}

const std::string kTimings =
    R"("timings":{"cache_n":6,"prompt_n":4,"prompt_ms":8,"prompt_per_token_ms":2,)"
    R"("prompt_per_second":500,"predicted_n":4,"predicted_ms":40,"predicted_per_token_ms":10,)"
    R"("predicted_per_second":100,"queue_ms":1,"load_ms":2,"first_token_ms":9,"draft_n":3,)"
    R"("draft_n_accepted":2})";
const std::string kUsage =
    R"("usage":{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14,)"
    R"("prompt_tokens_details":{"cached_tokens":6},"completion_tokens_details":)"
    R"({"accepted_prediction_tokens":2,"rejected_prediction_tokens":1}})";

std::string streamed(AnswerWriter& writer, const std::vector<core::TokenEvent>& tokens,
                     const Finished& end) {
  std::string out;
  for (const core::TokenEvent& token : tokens) writer.write(token, out);
  writer.write_end(end, out);
  return out;
}

json::value whole(AnswerWriter& writer, const std::vector<core::TokenEvent>& tokens,
                  const Finished& end) {
  for (const core::TokenEvent& token : tokens) writer.collect(token);
  return json::parse(writer.whole(end));
}

TEST(ChatWriter, AStreamOfText) {
  const auto writer = make_chat_writer(head());
  EXPECT_EQ(
      streamed(*writer, {text("He\"llo"), text(""), text("\xC3\xA9")}, finished()),
      chunk(R"("choices":[{"index":0,"delta":{"role":"assistant","content":""},)"
            R"("logprobs":null,"finish_reason":null}])") +
          chunk(R"("choices":[{"index":0,"delta":{"content":"He\"llo"},"logprobs":null,)"
                R"("finish_reason":null}])") +
          chunk("\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\xC3\xA9\"},"
                "\"logprobs\":null,\"finish_reason\":null}]") +
          chunk(R"("choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],)" +
                kTimings) +
          "data: [DONE]\n\n");
}

TEST(ChatWriter, TheUsageComesInAPieceOfItsOwn) {
  AnswerHead wanted = head();
  wanted.include_usage = true;
  const auto writer = make_chat_writer(wanted);
  const std::string out = streamed(*writer, {text("a")}, finished("length"));
  EXPECT_NE(out.find(chunk("\"choices\":[]," + kUsage) + "data: [DONE]\n\n"), std::string::npos)
      << out;
  EXPECT_NE(out.find(R"("finish_reason":"length"}],"usage":null,)"), std::string::npos);
  EXPECT_NE(out.find(R"("finish_reason":null}],"usage":null})"), std::string::npos);
}

TEST(ChatWriter, AnAnswerWithoutTokensHasItsRole) {
  const auto writer = make_chat_writer(head());
  const std::string out = streamed(*writer, {}, finished());
  EXPECT_NE(out.find(R"({"role":"assistant","content":""})"), std::string::npos);
  EXPECT_TRUE(out.ends_with("data: [DONE]\n\n"));
}

TEST(ChatWriter, CallsOfToolsAreStreamedInPieces) {
  const auto writer = make_chat_writer(head());
  const std::string out = streamed(
      *writer, {call(0, "c1", "f", ""), call(0, "", "", R"({"a")"), call(1, "c2", "g", "{}")},
      finished("tool_calls"));
  EXPECT_NE(out.find(R"("delta":{"role":"assistant","content":null})"), std::string::npos) << out;
  EXPECT_NE(out.find(R"("delta":{"tool_calls":[{"index":0,"id":"c1","type":"function",)"
                     R"("function":{"name":"f","arguments":""}}]})"),
            std::string::npos);
  EXPECT_NE(out.find(R"("delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]})"),
            std::string::npos);
  EXPECT_NE(out.find(R"("index":1,"id":"c2")"), std::string::npos);
  EXPECT_NE(out.find(R"("finish_reason":"tool_calls")"), std::string::npos);
}

TEST(ChatWriter, OnlyTheFirstCallWhereNoParallelOnesAreWanted) {
  AnswerHead single = head();
  single.parallel_tool_calls = false;
  const std::vector<core::TokenEvent> tokens = {call(0, "c1", "f", "{}"), call(1, "c2", "g", "{}")};
  const auto streaming = make_chat_writer(single);
  // In quotes: the answer's own id may have these two characters, too.
  EXPECT_EQ(streamed(*streaming, tokens, finished("tool_calls")).find(R"("c2")"),
            std::string::npos);
  const auto collecting = make_chat_writer(single);
  const json::value answer = whole(*collecting, tokens, finished("tool_calls"));
  EXPECT_EQ(answer.at("choices").at(0).at("message").at("tool_calls").as_array().size(), 1U);
}

TEST(ChatWriter, ReasoningIsNoContent) {
  core::TokenEvent thought;
  thought.reasoning = "Hm";
  const auto streaming = make_chat_writer(head());
  EXPECT_NE(
      streamed(*streaming, {thought}, finished()).find(R"("delta":{"reasoning_content":"Hm"})"),
      std::string::npos);
  const auto collecting = make_chat_writer(head());
  const json::value message =
      whole(*collecting, {thought, text("Yes")}, finished()).at("choices").at(0).at("message");
  EXPECT_EQ(message.at("reasoning_content"), "Hm");
  EXPECT_EQ(message.at("content"), "Yes");
}

TEST(ChatWriter, LogprobsHaveTheirBytes) {
  AnswerHead wanted = head();
  wanted.logprobs = true;
  const auto streaming = make_chat_writer(wanted);
  const std::string out = streamed(*streaming, {with_logprobs("Hi")}, finished());
  EXPECT_NE(out.find(R"("logprobs":{"content":[{"id":7,"token":"Hi","logprob":-0.5,)"
                     R"("bytes":[72,105],"top_logprobs":[{"id":7,"token":"Hi","logprob":-0.5,)"
                     R"("bytes":[72,105]},{"id":8,"token":")"
                     "\xEF\xBF\xBD"
                     R"(","logprob":-9999,"bytes":[195]}]}],"refusal":null})"),
            std::string::npos)
      << out;
  const auto collecting = make_chat_writer(wanted);
  const json::value answer =
      whole(*collecting, {with_logprobs("a"), text("x"), with_logprobs("b")}, finished());
  EXPECT_EQ(answer.at("choices").at(0).at("logprobs").at("content").as_array().size(), 2U);
}

TEST(ChatWriter, AWholeAnswer) {
  const auto writer = make_chat_writer(head());
  writer->collect(text("Hello"));
  writer->collect(text(" you"));
  EXPECT_EQ(writer->whole(finished()),
            R"({"id":"chatcmpl-r-1","object":"chat.completion","created":1700000000,)"
            R"("model":"demo","system_fingerprint":"berth-)" +
                std::string(kBuildId) +
                R"(","choices":[{"index":0,"message":{"role":"assistant","content":"Hello you",)"
                R"("refusal":null},"logprobs":null,"finish_reason":"stop"}],)" +
                kUsage + "," + kTimings + "}\n");
}

TEST(ChatWriter, AWholeAnswerOfCallsHasNoContent) {
  const auto writer = make_chat_writer(head());
  const json::value answer =
      whole(*writer, {call(0, "c1", "f", ""), call(0, "", "", "{\"a\":"), call(0, "", "", "1}")},
            finished("tool_calls"));
  const json::value& message = answer.at("choices").at(0).at("message");
  EXPECT_TRUE(message.at("content").is_null());
  EXPECT_EQ(message.at("tool_calls").at(0).at("function").at("arguments"), "{\"a\":1}");
  EXPECT_EQ(message.at("tool_calls").at(0).at("id"), "c1");
  EXPECT_EQ(message.at("tool_calls").at(0).at("type"), "function");
}

TEST(ChatWriter, WhatIsKeptIsCounted) {
  const auto writer = make_chat_writer(head());
  EXPECT_EQ(writer->collect(text("1234")), 4U);
  EXPECT_GE(writer->collect(call(0, "1234", "12", "12345")), 15U);
}

TEST(CompletionWriter, AStreamOfText) {
  const auto writer = make_completion_writer(head());
  const std::string begin =
      R"(data: {"id":"cmpl-r-1","object":"text_completion","created":1700000000,)"
      R"("model":"demo","system_fingerprint":"berth-)" +
      std::string(kBuildId) + R"(",)";
  EXPECT_EQ(streamed(*writer, {text("Hi"), text("")}, finished()),
            begin + R"("choices":[{"index":0,"text":"Hi","logprobs":null,"finish_reason":null}]})" +
                "\n\n" + begin +
                R"("choices":[{"index":0,"text":"","logprobs":null,"finish_reason":"stop"}],)" +
                kTimings + "}\n\ndata: [DONE]\n\n");
}

TEST(CompletionWriter, LogprobsAreLists) {
  AnswerHead wanted = head();
  wanted.logprobs = true;
  const auto writer = make_completion_writer(wanted);
  const json::value answer =
      whole(*writer, {with_logprobs("\xC3\xA9"), with_logprobs("b")}, finished());
  EXPECT_EQ(answer.at("object"), "text_completion");
  const json::value& choice = answer.at("choices").at(0);
  EXPECT_EQ(choice.at("text"),
            "\xC3\xA9"
            "b");
  EXPECT_EQ(choice.at("logprobs"), json::parse("{\"tokens\":[\"\xC3\xA9\",\"b\"],"
                                               "\"token_logprobs\":[-0.5,-0.5],"
                                               "\"top_logprobs\":[{\"\xC3\xA9\":-0.5,"
                                               "\"bytes:\\\\xc3\":-9999},"
                                               "{\"b\":-0.5,\"bytes:\\\\xc3\":-9999}],"
                                               "\"text_offset\":[0,1]}"));
  EXPECT_EQ(answer.at("usage").at("total_tokens"), 14);
}

// The vectors of RFC 4648, section 10.
TEST(Base64, IsPadded) {
  const auto coded = [](std::string_view bytes) {
    std::string out;
    append_base64(out, bytes);
    return out;
  };
  EXPECT_EQ(coded(""), "");
  EXPECT_EQ(coded("f"), "Zg==");
  EXPECT_EQ(coded("fo"), "Zm8=");
  EXPECT_EQ(coded("foo"), "Zm9v");
  EXPECT_EQ(coded("foobar"), "Zm9vYmFy");
  EXPECT_EQ(coded("\xFF\xFE\xFD"), "//79");
}

TEST(EmbeddingsJson, NumbersAreShortOrBase64) {
  core::Embeddings embeddings;
  embeddings.embeddings = {{{0.1F, -2.0F}, 3}, {{1.0F}, 1}};
  embeddings.prompt_tokens = 4;
  EXPECT_EQ(*embeddings_json(embeddings, "demo", false),
            R"({"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1,-2]},)"
            R"({"object":"embedding","index":1,"embedding":[1]}],"model":"demo",)"
            R"("usage":{"prompt_tokens":4,"total_tokens":4}})"
            "\n");
  const json::value coded = json::parse(*embeddings_json(embeddings, "demo", true));
  EXPECT_EQ(coded.at("data").at(0).at("embedding"), "zczMPQAAAMA=");
  EXPECT_EQ(coded.at("data").at(1).at("embedding"), "AACAPw==");
}

TEST(EmbeddingsJson, HasABound) {
  core::Embeddings embeddings;
  embeddings.embeddings.assign(2048, {std::vector<float>(4096, 0.0125F), 1});
  const Result<std::string> numbers = embeddings_json(embeddings, "demo", false);
  EXPECT_TRUE(numbers) << "7 bytes each";
  embeddings.embeddings.assign(2048, {std::vector<float>(4096, 0.012345678F), 1});
  const Result<std::string> long_numbers = embeddings_json(embeddings, "demo", false);
  ASSERT_FALSE(long_numbers);
  EXPECT_EQ(long_numbers.error().reason, Reason::kInvalidArgument);
  EXPECT_EQ(long_numbers.error().extras->param, "input");
  EXPECT_THAT(long_numbers.error().message, testing::HasSubstr("fewer inputs"));
  EXPECT_TRUE(embeddings_json(embeddings, "demo", true));
}

}  // namespace
}  // namespace berth::gateway::openai
