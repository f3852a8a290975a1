#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "tests/unit/gateway/openai/read.h"

namespace berth::gateway::openai {
namespace {

TextRequest read_ok(std::string_view members) {
  const Result<TextRequest> request = read(read_completion_request, completion_body(members));
  EXPECT_TRUE(request) << members << ": " << (request ? "" : request.error().message);
  return request ? *request : TextRequest{};
}

std::string text_of(const TextRequest& request) {
  const auto* prompt = std::get_if<core::PromptInput>(&request.generate.input);
  return prompt == nullptr ? "(no text)" : prompt->text;
}

std::vector<std::int32_t> ids_of(const TextRequest& request) {
  const auto* tokens = std::get_if<core::TokenInput>(&request.generate.input);
  return tokens == nullptr ? std::vector<std::int32_t>{} : tokens->ids;
}

TEST(CompletionRequest, APromptIsATextOrTokens) {
  EXPECT_EQ(text_of(read_ok("")), "Hi");
  EXPECT_EQ(text_of(read_ok(R"("prompt":["Hello"])")), "Hello");
  EXPECT_EQ(text_of(read_ok(R"("prompt":"")")), "");
  EXPECT_EQ(ids_of(read_ok(R"("prompt":[1,2,3])")), (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(ids_of(read_ok(R"("prompt":[[4,5]])")), (std::vector<std::int32_t>{4, 5}));
}

TEST(CompletionRequest, FieldsThatChangeNothingAreTaken) {
  const TextRequest request =
      read_ok(R"("echo":false,"suffix":"","best_of":1,"n":1,"logprobs":2,"max_tokens":3)");
  EXPECT_EQ(request.generate.top_logprobs, 2U);
  EXPECT_EQ(request.generate.max_tokens, 3U);
  EXPECT_FALSE(read_ok(R"("suffix":null,"logprobs":null)").generate.top_logprobs);
  EXPECT_EQ(read_ok(R"("logprobs":0)").generate.top_logprobs, 0U);
}

class CompletionRefusal : public testing::TestWithParam<Refusal> {};

TEST_P(CompletionRefusal, NamesTheField) {
  expect_refused(read(read_completion_request, completion_body(GetParam().body)), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Fields, CompletionRefusal,
                         testing::ValuesIn(std::vector<Refusal>{
                             {"Missing", R"("prompt":null)", "prompt"},
                             {"Type", R"("prompt":5)", "prompt"},
                             {"Empty", R"("prompt":[])", "prompt"},
                             {"Several", R"("prompt":["a","b"])", "prompt"},
                             {"ElementType", R"("prompt":[true])", "prompt[0]"},
                             {"Mixed", R"("prompt":[1,"a"])", "prompt[1]"},
                             {"Negative", R"("prompt":[1,-1])", "prompt[1]"},
                             {"Huge", R"("prompt":[2147483648])", "prompt[0]"},
                             {"Fraction", R"("prompt":[1.5])", "prompt[0]"},
                             {"ListEmpty", R"("prompt":[[]])", "prompt[0]"},
                             {"ListNegative", R"("prompt":[[5,-7]])", "prompt[0][1]"},
                             {"Logprobs", R"("logprobs":21)", "logprobs"},
                             {"LogprobsType", R"("logprobs":true)", "logprobs"},
                             {"Echo", R"("echo":true)", "echo"},
                             {"EchoType", R"("echo":"x")", "echo"},
                             {"Suffix", R"("suffix":"end")", "suffix"},
                             {"BestOf", R"("best_of":3)", "best_of"},
                             {"N", R"("n":0)", "n"},
                             {"Temperature", R"("temperature":-1)", "temperature"},
                         }),
                         [](const testing::TestParamInfo<Refusal>& test) {
                           return std::string(test.param.name);
                         });

}  // namespace
}  // namespace berth::gateway::openai
