#include "supervisor/gateway/model_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace berth::gateway {
namespace {

using ::testing::ElementsAre;

// The answer as it goes out, from pieces of that size.
std::string renamed(AnswerKind kind, std::string_view answer, std::size_t size) {
  AnswerNames names(kind, "our \"name\"");
  std::string out;
  for (std::size_t at = 0; at < answer.size(); at += size) {
    out += names.rename(answer.substr(at, size));
  }
  return out;
}

bool may_end(std::string_view stream) {
  AnswerNames names(AnswerKind::kEvents, "x");
  names.rename(stream);
  return names.event_stream_ended();
}

TEST(ModelName, L27_OnlyTheOutermostModelOfARequestIsCutOut) {
  EXPECT_THAT(cut_at_model(R"({"model":"a","n":1})"), ElementsAre(R"({"model":)", R"(,"n":1})"));
  EXPECT_THAT(cut_at_model(R"( { "n" : [ {"model":"b"} , "model" ] , "model" : "a\"}" } )"),
              ElementsAre(R"( { "n" : [ {"model":"b"} , "model" ] , "model" : )", " } "));
  EXPECT_THAT(cut_at_model(R"({"user":"model","x":{"model":"c"},"model":"a"})"),
              ElementsAre(R"({"user":"model","x":{"model":"c"},"model":)", "}"));
}

TEST(ModelName, L27_ARequestStaysAsItIsByteForByte) {
  const std::string before =
      R"({"b":18446744073709551615,"a":-9223372036854775808,"f":0.10000000000000000555e+00,)"
      R"("a":2,"u":"\u00e9é\ud83d\ude00\/","z":{"z":[[]],"n":null},"model":)";
  const std::string after = R"(,"b":1E400,"messages":[{"content":"say \"model\":\"x\""}]  })";
  EXPECT_THAT(cut_at_model(before + R"("x")" + after), ElementsAre(before, after));
}

TEST(ModelName, L27_EveryWayToWriteTheKeyIsFound) {
  EXPECT_THAT(cut_at_model(R"({"\u006d\u006F\u0064\u0065\u006c":"a"})"),
              ElementsAre(R"({"\u006d\u006F\u0064\u0065\u006c":)", "}"));
  EXPECT_THAT(cut_at_model(R"({"model":"a","mode\u006c":"b"})"),
              ElementsAre(R"({"model":)", R"(,"mode\u006c":)", "}"));
  for (const char* const other :
       {R"({"models":"a"})", R"({"mode":"a"})", R"({"model\\":"a"})", R"({"model":null})",
        R"({"model":{"model":"a"}})", R"(["model","a"])", R"([{"model":"a"}])", R"("model")", "",
        "{", R"({"model":)", R"({"model)", R"({"\u006d\u006F\u0064\u0065\u006c\u006c":"a"})"}) {
    EXPECT_THAT(cut_at_model(other), ElementsAre(other));
  }
}

TEST(ModelName, L27_AnAnswerGetsOurNameWhereverItIsSplit) {
  const std::string json =
      R"({"id":"x","model":"their\\\"s","choices":[{"model":"in"}],"big":12345678901234567890})";
  const std::string want =
      R"({"id":"x","model":"our \"name\"","choices":[{"model":"in"}],"big":12345678901234567890})";
  for (std::size_t size = 1; size <= json.size(); ++size) {
    EXPECT_EQ(renamed(AnswerKind::kJson, json, size), want) << size;
    EXPECT_EQ(renamed(AnswerKind::kOther, json, size), json);
  }
}

TEST(ModelName, L27_AnEventStreamGetsOurNameWhereverItIsSplit) {
  const std::string stream =
      ": a comment with \"model\":\"a\"\r\n\r\n"
      "event: x\ndata: {\"model\":\"theirs\",\"n\":[1]}\n\n"
      "data:{\"choices\":[],\"model\": \"theirs\"}\r\n\r\n"
      "dat: {\"model\":\"theirs\"}\n"
      "data: {\"model\":\"cut off\n"
      "data: {\"model\":\"theirs\"}\r\rdata: [DONE]\n\n";
  const std::string want =
      ": a comment with \"model\":\"a\"\r\n\r\n"
      "event: x\ndata: {\"model\":\"our \\\"name\\\"\",\"n\":[1]}\n\n"
      "data:{\"choices\":[],\"model\": \"our \\\"name\\\"\"}\r\n\r\n"
      "dat: {\"model\":\"theirs\"}\n"
      "data: {\"model\":\"our \\\"name\\\"\"\n"
      "data: {\"model\":\"our \\\"name\\\"\"}\r\rdata: [DONE]\n\n";
  for (std::size_t size = 1; size <= stream.size(); ++size) {
    EXPECT_EQ(renamed(AnswerKind::kEvents, stream, size), want) << size;
  }
}

TEST(ModelName, L27_AnEventStreamEndsWithDoneOrAnError) {
  EXPECT_TRUE(may_end("data: {}\n\ndata: [DONE]\n\n"));
  EXPECT_TRUE(may_end("data:[DONE]"));
  EXPECT_TRUE(may_end("data: {\"error\":{\"message\":\"m\"}}\n\n"));
  EXPECT_TRUE(may_end("data: {\"error\" : \"m\"}\n\n: bye\n"));
  EXPECT_FALSE(may_end(""));
  EXPECT_FALSE(may_end("data: {\"choices\":[]}\n\n"));
  EXPECT_FALSE(may_end("data: {\"error\":null}\n\n"));
  EXPECT_FALSE(may_end("data: {\"x\":{\"error\":1}}\n\n"));
  EXPECT_FALSE(may_end("data: \"[DONE]\"\n\n"));
  EXPECT_FALSE(may_end("data: [DONE]!\n\n"));
  EXPECT_FALSE(may_end("data: {\"error\":1}\n\ndata: {}\n\n")) << "it went on";
}

TEST(ModelName, L27_AnEventStreamIsCompleteBehindTheEmptyLineAfterDone) {
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    const std::string stream = "data: {\"a\":1}" + end + end + "data: [DONE]" + end + end;
    AnswerNames names(AnswerKind::kEvents, "ours");
    // The line feed of the last line's end may come late.
    const std::size_t last = stream.size() - end.size();
    for (std::size_t at = 0; at < stream.size(); ++at) {
      EXPECT_FALSE(at <= last && names.event_stream_complete()) << at;
      names.rename(stream.substr(at, 1));
    }
    EXPECT_TRUE(names.event_stream_complete());
  }
  AnswerNames names(AnswerKind::kEvents, "ours");
  names.rename("data: {\"error\":1}\n\ndata: \"[DONE]\"\n\n\n");
  EXPECT_FALSE(names.event_stream_complete());
}

TEST(ModelName, L27_TheUsageOfAnAnswerIsRead) {
  const auto tokens = [](AnswerKind kind, const std::string& answer) {
    AnswerNames names(kind, "ours");
    for (const char byte : answer) names.rename(std::string(1, byte));
    return std::vector{names.usage().prompt_tokens, names.usage().completion_tokens,
                       names.usage().cached_tokens};
  };
  EXPECT_THAT(tokens(AnswerKind::kJson, R"({"x":{"usage":{"prompt_tokens":9}},"usage":{"note":"}",)"
                                        R"("d":{"c":1},"prompt_tokens":7,"completion_tokens":2}})"),
              ElementsAre(7, 2, 0));
  EXPECT_THAT(tokens(AnswerKind::kEvents,
                     "data: {\"usage\":{\"prompt_tokens\":7,\"prompt_tokens_details\":"
                     "{\"cached_tokens\":5}}}\n\ndata: {\"usage\":null}\n\n"
                     "data: [DONE]\n\n"),
              ElementsAre(7, 0, 5));
  for (const std::string& none :
       {std::string(), std::string("{}"), std::string(R"({"usage":[{"prompt_tokens":7}]})"),
        R"({"usage":{"x":")" + std::string(2000, 'x') + R"(","prompt_tokens":7}})",
        std::string(R"({"usage":{"prompt_tokens":-1,"prompt_tokens_details":[1]}})")}) {
    EXPECT_THAT(tokens(AnswerKind::kJson, none), ElementsAre(0, 0, 0)) << none;
  }
}

TEST(ModelName, L27_KindsOfAnswers) {
  EXPECT_EQ(answer_kind("text/event-stream; charset=utf-8"), AnswerKind::kEvents);
  EXPECT_EQ(answer_kind("application/json"), AnswerKind::kJson);
  EXPECT_EQ(answer_kind("audio/wav"), AnswerKind::kOther);
}

// A line may be longer than any buffer: nothing of it is kept.
TEST(ModelName, L27_LongLinesPass) {
  AnswerNames names(AnswerKind::kEvents, "ours");
  std::string head = names.rename("data: {\"model\":\"theirs\",\"x\":\"");
  EXPECT_EQ(head, "data: {\"model\":\"ours\",\"x\":\"");
  const std::string megabyte(1UL << 20U, 'x');
  for (int i = 0; i < 8; ++i) EXPECT_EQ(names.rename(megabyte), megabyte);
  EXPECT_EQ(names.rename("\"}\n\n"), "\"}\n\n");
}

}  // namespace
}  // namespace berth::gateway
