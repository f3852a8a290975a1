// Input that is meant to hurt: each gets a typed error or a defined result, and the worker goes on.

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/integration/worker/calls/calling.h"

namespace berth::worker {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

class BadInput : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    worker_ = new WorkerProcess({tinychat(), {"--context", "512"}});
    const auto event = worker_->wait_loaded();
    ASSERT_TRUE(event && event->has_ready()) << worker_->log();
  }
  static void TearDownTestSuite() {
    delete worker_;
    worker_ = nullptr;
  }
  // What came before has left the worker as it was.
  void TearDown() override {
    EXPECT_EQ(worker_->generate(greedy_chat("Hello")).text, "Hello! How can I help you?");
  }

  static v1::ErrorDetail refused(const v1::GenerateRequest& request) {
    const auto outcome = worker_->generate(request);
    EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT)
        << outcome.status.error_message();
    EXPECT_TRUE(outcome.error.has_value());
    return outcome.error.value_or(v1::ErrorDetail());
  }

  static WorkerProcess* worker_;
};

WorkerProcess* BadInput::worker_ = nullptr;

TEST_F(BadInput, NumbersThatAreNone) {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    auto request = greedy_prompt("x");
    request.mutable_sampling()->set_min_p(bad);
    EXPECT_EQ(refused(request).param(), "sampling.min_p");
    request = greedy_prompt("x");
    auto& bias = *request.mutable_sampling()->add_logit_bias();
    bias.set_token(5);
    bias.set_bias(bad);
    EXPECT_EQ(refused(request).param(), "sampling.logit_bias[0].bias");
  }
}

TEST_F(BadInput, GrammarsThatCannotBeParsedOrBlowUp) {
  for (const char* const grammar :
       {"", "root", "root ::= \"a", "root ::= x", "other ::= \"a\"", "root ::= root \"a\"",
        "root ::= (((\"a\"{1,999}){1,999}){1,999}){1,999}", "root ::= \"a\"{1,99999999}",
        "root ::= [\xff]"}) {
    auto request = greedy_prompt("x");
    request.mutable_format()->set_grammar(grammar);
    EXPECT_EQ(refused(request).param(), "format.grammar") << grammar;
  }
  auto request = greedy_prompt("x");
  request.mutable_format()->set_grammar("root ::= " + std::string(200'000, '('));
  EXPECT_EQ(refused(request).param(), "format.grammar");
}

TEST_F(BadInput, SchemasWithRecursionAndTenThousandAlternatives) {
  auto alternatives = Json::array();
  for (int i = 0; i < 10'000; ++i) {
    alternatives.push_back(
        {{"type", "object"}, {"properties", {{"p" + std::to_string(i), {{"$ref", "#"}}}}}});
  }
  auto request = greedy_prompt("x");
  request.mutable_format()->set_json_schema(Json{{"anyOf", alternatives}}.dump());
  request.set_max_tokens(20);
  const auto outcome = worker_->generate(request);  // a grammar, or a typed error
  if (!outcome.status.ok()) {
    ASSERT_TRUE(outcome.error.has_value());
    EXPECT_EQ(outcome.error->param(), "format.json_schema");
  }
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += R"({"not":)";
  request.mutable_format()->set_json_schema(deep);
  EXPECT_EQ(refused(request).param(), "format.json_schema");
  request.mutable_format()->set_json_schema(R"({"$ref": "#"})");
  EXPECT_EQ(refused(request).param(), "format.json_schema");
}

TEST_F(BadInput, AStopTextOfAMegabyte) {
  auto request = greedy_prompt("x");
  request.add_stop(std::string(1U << 20U, 'x'));
  EXPECT_EQ(refused(request).param(), "stop[0]");
}

TEST_F(BadInput, AHundredThousandBiases) {
  auto request = greedy_prompt("x");
  for (int i = 0; i < 100'000; ++i) request.mutable_sampling()->add_logit_bias()->set_token(i);
  EXPECT_THAT(refused(request).message(), HasSubstr("100000"));
}

TEST_F(BadInput, EveryTokenBanned) {
  v1::GenerateRequest request = greedy_prompt("x");
  for (int i = 0; i < 4096; ++i) {
    auto& bias = *request.mutable_sampling()->add_logit_bias();
    bias.set_token(i);
    bias.set_bias(-100);
  }
  request.set_max_tokens(5);
  EXPECT_TRUE(worker_->generate(request).status.ok());  // there are 4516
  request.mutable_format()->set_grammar("root ::= \"a\"");
  const auto outcome = worker_->generate(request);
  EXPECT_TRUE(outcome.done.has_value() || outcome.error.has_value());
}

TEST_F(BadInput, T80_EmptyPromptsAndPromptsOfControlTokensOnly) {
  for (const char* const text : {"", "<s>", "<|im_start|><|im_end|></s>", "<|im_end|>"}) {
    auto request = greedy_prompt(text);
    request.set_max_tokens(3);
    const auto outcome = worker_->generate(request);
    EXPECT_TRUE(outcome.done.has_value()) << text << ": " << outcome.status.error_message();
  }
}

TEST_F(BadInput, BytesThatAreNoText) {
  EXPECT_EQ(refused(greedy_prompt("\xc3(")).param(), "prompt");
  EXPECT_EQ(refused(greedy_messages("[{\"role\": \"user\", \"content\": \"\xff\"}]")).reason(),
            "invalid_argument");
  auto request = greedy_prompt("x");
  request.add_stop("\xff");
  EXPECT_EQ(refused(request).param(), "stop[0]");
  request = greedy_prompt("x");
  request.mutable_format()->set_json_schema("{\"const\": \"\xff\"}");
  EXPECT_EQ(refused(request).param(), "format.json_schema");
}

TEST_F(BadInput, NoTokensAndFarTooMany) {
  auto request = greedy_chat("Who are you?");
  request.set_max_tokens(0);
  const auto none = worker_->generate(request);
  ASSERT_TRUE(none.done.has_value());
  EXPECT_EQ(none.done->usage().completion_tokens(), 0U);
  EXPECT_EQ(none.done->finish_reason(), "length");
  for (const std::uint32_t many : {1U << 31U, 4294967295U}) {
    request.set_max_tokens(many);
    const auto outcome = worker_->generate(request);
    ASSERT_TRUE(outcome.done.has_value()) << outcome.status.error_message();
    EXPECT_EQ(outcome.done->finish_reason(), "stop");
  }
}

TEST_F(BadInput, T93_AnAbsurdPromptIsRefusedUnread) {
  auto request = greedy_prompt(std::string(std::size_t{60} << 20U, 'x'));
  const auto error = refused(request);
  EXPECT_EQ(error.reason(), "window_exceeded");
  EXPECT_EQ(error.limit(), 512U);
  EXPECT_GT(error.needed(), 512U);
  EXPECT_THAT(error.message(), HasSubstr("at least"));

  const auto chat = refused(greedy_chat(std::string(std::size_t{8} << 20U, 'x')));
  EXPECT_TRUE(chat.reason() == "window_exceeded" || chat.reason() == "template_failed");
}

TEST_F(BadInput, ControlTokensThatAUserTypesInAChatAreText) {
  v1::TokenizeRequest request;
  *request.mutable_chat() = greedy_chat("Hello<|im_end|>").chat();
  const auto typed = reply(*worker_, &v1::Worker::Stub::Tokenize, request);
  *request.mutable_chat() = greedy_chat("Hello").chat();
  const auto plain = reply(*worker_, &v1::Worker::Stub::Tokenize, request);
  ASSERT_TRUE(typed.status.ok() && plain.status.ok());
  // 3 is <|im_end|>.
  const auto ends = [end = 3](const auto& ids) { return std::count(ids.begin(), ids.end(), end); };
  EXPECT_GT(ends(plain.response.ids()), 0);
  EXPECT_EQ(ends(typed.response.ids()), ends(plain.response.ids()));
  EXPECT_GT(typed.response.ids_size(), plain.response.ids_size());
}

}  // namespace
}  // namespace berth::worker
