#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "supervisor/gateway/validate.h"
#include "tests/unit/gateway/openai/read.h"

namespace berth::gateway::openai {
namespace {

std::string embedding_body(const std::string& members) {
  return R"({"model":"m",)" + members + "}";
}

EmbeddingRequest read_ok(const std::string& members) {
  const auto request = read(read_embedding_request, embedding_body(members));
  EXPECT_TRUE(request) << members << ": " << (request ? "" : request.error().message);
  return request ? *request : EmbeddingRequest{};
}

// "a" of a text, "1,2" of tokens; parted by blanks.
std::string inputs(const std::string& members) {
  std::string shown;
  for (const core::EmbedInput& input : read_ok(members).embed.inputs) {
    if (!shown.empty()) shown += ' ';
    if (const auto* prompt = std::get_if<core::PromptInput>(&input)) {
      shown += prompt->text;
      continue;
    }
    const std::vector<std::int32_t>& ids = std::get<core::TokenInput>(input).ids;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      shown += (i > 0 ? "," : "") + std::to_string(ids[i]);
    }
  }
  return shown;
}

TEST(EmbeddingRequest, InputsAreTextsOrTokens) {
  EXPECT_EQ(inputs(R"("input":"a")"), "a");
  EXPECT_EQ(inputs(R"("input":["a","b"])"), "a b");
  EXPECT_EQ(inputs(R"("input":[1,2])"), "1,2");
  EXPECT_EQ(inputs(R"("input":[[1],[2,3]])"), "1 2,3");
}

TEST(EmbeddingRequest, TheRestIsRead) {
  const EmbeddingRequest request =
      read_ok(R"("input":"a","encoding_format":"base64","dimensions":64,"user":"u")");
  EXPECT_TRUE(request.base64);
  EXPECT_EQ(request.embed.dimensions, 64U);
  EXPECT_EQ(request.embed.user, "u");
  EXPECT_TRUE(request.embed.normalize);
  EXPECT_FALSE(read_ok(R"("input":"a")").base64);
  EXPECT_FALSE(read_ok(R"("input":"a","encoding_format":"float")").base64);
}

class EmbeddingRefusal : public testing::TestWithParam<Refusal> {};

TEST_P(EmbeddingRefusal, NamesTheField) {
  expect_refused(read(read_embedding_request, embedding_body(GetParam().body)), GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Fields, EmbeddingRefusal,
    testing::ValuesIn(std::vector<Refusal>{
        {"Missing", R"("a":1)", "input"},
        {"Type", R"("input":5)", "input"},
        {"Empty", R"("input":"")", "input"},
        {"EmptyList", R"("input":[])", "input"},
        {"EmptyElement", R"("input":["a",""])", "input[1]"},
        {"EmptyTokens", R"("input":[[]])", "input[0]"},
        {"Object", R"("input":[{"a":1}])", "input[0]"},
        {"Token", R"("input":[1,"a"])", "input[1]"},
        {"TokenOfSecond", R"("input":[[1],[-1]])", "input[1][0]"},
        {"Encoding", R"("input":"a","encoding_format":"int8")", "encoding_format"},
        {"Dimensions", R"("input":"a","dimensions":0)", "dimensions"},
        {"DimensionsType", R"("input":"a","dimensions":"many")", "dimensions"},
        {"Model", R"("input":"a","model":[])", "model"},
    }),
    [](const testing::TestParamInfo<Refusal>& test) { return std::string(test.param.name); });

TEST(EmbeddingRequest, TooManyInputsAreRefused) {
  std::string list = "\"a\"";
  for (std::size_t i = 0; i < kMaxEmbedInputs; ++i) list += ",\"a\"";
  const auto request = read(read_embedding_request, embedding_body("\"input\":[" + list + "]"));
  ASSERT_FALSE(request);
  EXPECT_EQ(param_of(request.error()), "input");
}

TEST(EmbeddingRequest, WhatCannotFitIsRefusedBeforeItIsComputed) {
  std::string list = "\"a\"";
  for (std::size_t i = 1; i < 2048; ++i) list += ",\"a\"";
  const auto ask = [&list](const std::string& rest) {
    return read(read_embedding_request, embedding_body("\"input\":[" + list + "]," + rest));
  };
  EXPECT_TRUE(ask(R"("encoding_format":"base64","dimensions":6144)"));
  const auto coded = ask(R"("encoding_format":"base64","dimensions":6145)");
  ASSERT_FALSE(coded);
  EXPECT_EQ(param_of(coded.error()), "dimensions");
  EXPECT_THAT(coded.error().message, testing::HasSubstr("2048 inputs with 6145 numbers"));
  EXPECT_TRUE(ask(R"("dimensions":6145)")) << "it depends on the numbers";
  EXPECT_FALSE(ask(R"("dimensions":16385)"));
}

}  // namespace
}  // namespace berth::gateway::openai
