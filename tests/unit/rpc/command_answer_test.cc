// What a program answers, and how its answers end.
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
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST_F(CommandRequestTest, L27_AStreamBecomesEvents) {
  generate(prompt("x"));
  wire_.head(200, kStream);
  const std::string stream =
      ": ping\r\n\r\n"
      "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\n\n"
      "data:{\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n"
      "data: {\"choices\":[{\"delta\":{\"content\":\"Gr\u00fc\"}}],\"usage\":null}\n\n"
      "data: {\"choices\":[{\"delta\":{\"content\":\"\u00dfe\"}}]}\r\n\r\n"
      "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"c\",\"function\":"
      "{\"name\":\"f\",\"arguments\":\"{\"}}]}}]}\n\n"
      "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n"
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,"
      "\"prompt_tokens_details\":{\"cached_tokens\":2}}}\n\n"
      "data: [DONE]\n\n";
  clock_.advance(2s);
  for (const char byte : stream) wire_.piece(std::string(1, byte));
  EXPECT_EQ(wire_.sink, nullptr) << "complete at [DONE]";
  ASSERT_TRUE(events_->end && *events_->end);
  EXPECT_EQ(events_->text, "Gr\u00fc\u00dfe");
  EXPECT_EQ(events_->reasoning, "hm");
  ASSERT_THAT(events_->calls, SizeIs(1));
  EXPECT_EQ(events_->calls[0].index, 1U);
  EXPECT_EQ(events_->calls[0].name, "f");
  EXPECT_EQ(events_->calls[0].arguments, "{");
  EXPECT_EQ(events_->done->finish_reason, "tool_calls");
  EXPECT_EQ(events_->done->usage.prompt_tokens, 7U);
  EXPECT_EQ(events_->done->usage.cached_tokens, 2U);
  EXPECT_EQ(events_->done->timings.first_token_us, 2'000'000U);
}

TEST_F(CommandRequestTest, L27_AProgramThatKnowsNoStreamsIsUnderstood) {
  ASSERT_TRUE(end_of(200, "application/json",
                     R"({"choices":[{"message":{"content":"ab","tool_calls":[{"id":"c",)"
                     R"("function":{"name":"f","arguments":"{}"}}]},"finish_reason":"length"}]})"));
  EXPECT_EQ(events_->text, "ab");
  EXPECT_THAT(events_->calls, SizeIs(1));
  EXPECT_EQ(events_->done->finish_reason, "length");
  ASSERT_TRUE(end_of(200, "application/json", R"({"choices":[{"text":"a"}]})"));
  EXPECT_EQ(events_->text, "a");
}

TEST_F(CommandRequestTest, LargeAnswersAreReadOnThePool) {
  const std::string padding(kLargeAnswer, ' ');
  generate(prompt("x"));
  wire_.head(200, "application/json");
  wire_.piece(R"({"choices":[{"text":"a"}]})" + padding);
  wire_.end({});
  EXPECT_FALSE(events_->end);
  ASSERT_THAT(pool_, SizeIs(1));
  std::exchange(pool_, {}).front()();
  ASSERT_TRUE(events_->end && *events_->end);
  EXPECT_EQ(events_->text, "a");

  core::EmbedRequest request;
  request.inputs = {core::PromptInput{"x"}};
  std::optional<Result<core::Embeddings>> answered;
  call_ = client_->embed(request, clock_.now() + 1min,
                         [&](Result<core::Embeddings> got) { answered = std::move(got); });
  clock_.settle();
  wire_.head(200, "application/json");
  wire_.piece(R"({"data":[{"embedding":[1]}]})" + padding);
  wire_.end({});
  EXPECT_FALSE(answered);
  ASSERT_THAT(pool_, SizeIs(1));
  pool_.front()();
  ASSERT_TRUE(answered);
  EXPECT_TRUE(*answered);
}

TEST_F(CommandRequestTest, L27_AnswersThatCannotBeReadAreErrors) {
  for (const char* const body :
       {"data: {\"choices\":[{\n\n", "data: 1\n\n", "data: {\"error\":{\"message\":\"m\"}}\n\n"}) {
    const Status end = end_of(200, kStream, body);
    ASSERT_FALSE(end) << body;
    EXPECT_EQ(end.error().reason, Reason::kInternal) << body;
  }
  EXPECT_FALSE(end_of(200, "application/json", "{}"));
  EXPECT_FALSE(end_of(200, "text/html", "<p>"));
  generate(prompt("x"));
  wire_.head(200, kStream);
  for (int i = 0; i < 5; ++i) wire_.piece(std::string(1UL << 20U, 'x'));
  ASSERT_TRUE(events_->end) << "a line has a bound";
  EXPECT_EQ(events_->end->error().reason, Reason::kInternal);
}

TEST_F(CommandRequestTest, L9_L27_AnAnswerThatBreaksOffIsOneOfAWorkerThatDied) {
  const std::string token = "data: {\"choices\":[{\"text\":\"a\"}]}\n\n";
  Status end = end_of(200, kStream, token, fail(Reason::kWorkerDied, "reset"));
  EXPECT_EQ(end.error().reason, Reason::kWorkerDied);
  EXPECT_EQ(events_->text, "a");
  end = end_of(200, kStream, token);
  ASSERT_FALSE(end) << "ended without an end";
  EXPECT_EQ(end.error().reason, Reason::kWorkerDied);
  EXPECT_TRUE(
      end_of(200, kStream, token + "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n"))
      << "some send no [DONE]";
}

TEST_F(CommandRequestTest, L27_RefusalsOfTheProgramAreTranslated) {
  struct Case {
    unsigned int status;
    const char* body;
    Reason reason;
    const char* says;
  };
  for (const Case& each : {
           Case{400, R"({"error":{"message":"too long: /home/me/model.bin x"}})",
                Reason::kInvalidArgument, "answered 400: too long: <path>"},
           Case{422, R"({"detail":"bad"})", Reason::kInvalidArgument, "answered 422: bad"},
           Case{404, "<html>", Reason::kInvalidArgument, "answered 404."},
           Case{429, R"({"error":"busy"})", Reason::kQueueFull, "answered 429: busy"},
           Case{401, "{}", Reason::kInternal, "answered 401."},
           Case{302, "", Reason::kInternal, "answered 302."},
           Case{500, R"({"message":"oops"})", Reason::kInternal, "answered 500: oops"},
       }) {
    const Status end = end_of(each.status, "application/json", each.body);
    ASSERT_FALSE(end) << each.status;
    EXPECT_EQ(end.error().reason, each.reason) << each.status;
    EXPECT_THAT(end.error().message, HasSubstr(each.says));
    EXPECT_TRUE(end.error().extras && end.error().extras->quotes) << "its words are for no log";
  }
}

TEST_F(CommandRequestTest, L27_AClientWithoutRoomPausesTheProgram) {
  generate(prompt("x"));
  events_->room = 2;
  wire_.head(200, kStream);
  std::string three;
  for (int i = 0; i < 3; ++i) three += "data: {\"choices\":[{\"text\":\"a\"}]}\n\n";
  EXPECT_TRUE(wire_.piece(three));
  EXPECT_FALSE(wire_.room);
  EXPECT_EQ(events_->tokens, 2);
  events_->room = 3;
  call_->resume();
  clock_.settle();
  EXPECT_EQ(events_->tokens, 3);
  EXPECT_FALSE(wire_.room);
  events_->room = 1000;
  call_->resume();
  clock_.settle();
  EXPECT_TRUE(wire_.room);
  EXPECT_TRUE(wire_.piece("data: [DONE]\n\n"));
  EXPECT_TRUE(events_->end && *events_->end);
}

TEST_F(CommandRequestTest, L27_AnEndWaitsForRoom) {
  generate(prompt("x"));
  events_->room = 1;
  wire_.head(200, kStream);
  wire_.piece(
      "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: {\"choices\":[{\"text\":\"b\"}]}\n\n");
  wire_.end(fail(Reason::kWorkerDied, "reset"));
  EXPECT_FALSE(events_->end);
  events_->room = 1000;
  call_->resume();
  clock_.settle();
  EXPECT_EQ(events_->text, "ab");
  EXPECT_TRUE(events_->end);
}

TEST_F(CommandRequestTest, T31_ACancelClosesTheConnectionAtOnce) {
  generate(prompt("x"));
  wire_.head(200, kStream);
  ASSERT_NE(wire_.sink, nullptr);
  call_->cancel();
  clock_.settle();
  EXPECT_EQ(wire_.sink, nullptr);
  EXPECT_TRUE(events_->end && !*events_->end);

  forward();
  ASSERT_NE(wire_.sink, nullptr);
  call_.reset();
  clock_.settle();
  EXPECT_EQ(wire_.sink, nullptr) << "a dropped call is a cancelled one";
}

TEST_F(CommandRequestTest, M19_TheDeadlineEndsItAlsoWithoutRoom) {
  generate(prompt("x"), 5s);
  events_->room = 1;
  wire_.head(200, kStream);
  wire_.piece("data: {\"choices\":[{\"text\":\"a\"}]}\n\n");
  clock_.advance(6s);
  EXPECT_EQ(wire_.sink, nullptr);
  ASSERT_TRUE(events_->end);
  EXPECT_EQ(events_->end->error().reason, Reason::kDeadline);
}

TEST_F(CommandRequestTest, ARequestOutlivesItsClient) {
  forward();
  client_.reset();
  wire_.head(200, "application/json");
  wire_.piece("a");
  wire_.end({});
  EXPECT_TRUE(passed_->end && *passed_->end);
}

}  // namespace
}  // namespace berth::rpc
