#include "supervisor/gateway/validate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace berth::gateway {
namespace {

core::GenerateRequest good() {
  core::GenerateRequest request;
  request.model = "demo";
  request.input = core::PromptInput{"Hello"};
  return request;
}

std::string param_of(const Status& status) {
  return status || !status.error().extras ? "" : status.error().extras->param;
}

TEST(Validate, TakesAPlainRequest) {
  EXPECT_TRUE(validate(good()));
}

TEST(Validate, InvalidUtf8IsRefusedWithFieldAndByte) {
  core::GenerateRequest request = good();
  request.input = core::PromptInput{"abc\xff"};
  const Status status = validate(request);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().reason, Reason::kInvalidArgument);
  EXPECT_EQ(param_of(status), "prompt");
  EXPECT_NE(status.error().message.find("byte 3"), std::string::npos) << status.error().message;

  request = good();
  request.input = core::ChatInput{"[\"\xc3\"]"};
  EXPECT_EQ(param_of(validate(request)), "chat.messages_json");
  request = good();
  request.stop = {"\xed\xa0\x80"};
  EXPECT_EQ(param_of(validate(request)), "stop");
  request = good();
  request.model = "\xf5";
  EXPECT_EQ(param_of(validate(request)), "model");
}

TEST(Validate, NumbersThatAreNoneAreRefused) {
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity(), -1.0F, 101.0F}) {
    core::GenerateRequest request = good();
    request.sampling.temperature = wrong;
    EXPECT_EQ(param_of(validate(request)), "sampling.temperature") << wrong;
  }
  for (const float wrong : {std::nanf(""), 0.0F, -0.5F, 1.5F}) {
    core::GenerateRequest request = good();
    request.sampling.top_p = wrong;
    EXPECT_EQ(param_of(validate(request)), "sampling.top_p") << wrong;
  }
  core::GenerateRequest edge = good();
  edge.sampling.temperature = 0.0F;
  edge.sampling.top_p = 1.0F;
  EXPECT_TRUE(validate(edge));
}

TEST(Validate, BoundsOfLists) {
  core::GenerateRequest request = good();
  request.stop.assign(17, "x");
  EXPECT_EQ(param_of(validate(request)), "stop");
  request.stop = {std::string(1025, 'x')};
  EXPECT_EQ(param_of(validate(request)), "stop");
  request.stop = {""};
  EXPECT_EQ(param_of(validate(request)), "stop");
  request.stop.assign(16, std::string(1024, 'x'));
  EXPECT_TRUE(validate(request));
}

TEST(Validate, EmptyInputs) {
  core::GenerateRequest request = good();
  request.model.clear();
  EXPECT_EQ(param_of(validate(request)), "model");
  request = good();
  request.input = core::ChatInput{};
  EXPECT_EQ(param_of(validate(request)), "chat.messages_json");
  request.input = core::TokenInput{};
  EXPECT_EQ(param_of(validate(request)), "tokens.ids");
  request.input = core::TokenInput{{1, -2}};
  EXPECT_EQ(param_of(validate(request)), "tokens.ids");
}

TEST(Validate, IdsAreBounded) {
  core::GenerateRequest request = good();
  request.input = core::TokenInput{std::vector<std::int32_t>(kMaxPromptIds, 1)};
  EXPECT_TRUE(validate(request));
  request.input = core::TokenInput{std::vector<std::int32_t>(kMaxPromptIds + 1, 1)};
  EXPECT_EQ(param_of(validate(request)), "tokens.ids");
  request = good();
  request.sampling.logit_bias.assign(kMaxBiases + 1, {1, 0});
  EXPECT_EQ(param_of(validate(request)), "sampling.logit_bias");

  core::EmbedRequest vectors;
  vectors.model = "demo";
  const core::TokenInput half{std::vector<std::int32_t>(kMaxPromptIds / 2, 1)};
  vectors.inputs = {half, core::PromptInput{"a"}, half};
  EXPECT_TRUE(validate(vectors));
  vectors.inputs.emplace_back(core::TokenInput{{1}});
  EXPECT_EQ(param_of(validate(vectors)), "inputs");
}

TEST(Validate, RequestIds) {
  EXPECT_TRUE(validate_request_id("a"));
  EXPECT_TRUE(validate_request_id("req_01:A.b-c"));
  EXPECT_FALSE(validate_request_id(""));
  EXPECT_FALSE(validate_request_id("two words"));
  EXPECT_FALSE(validate_request_id("line\nbreak"));
  EXPECT_FALSE(validate_request_id(std::string(129, 'a')));
}

TEST(Validate, Embeddings) {
  core::EmbedRequest request;
  request.model = "demo";
  EXPECT_EQ(param_of(validate(request)), "inputs");
  request.inputs = {core::PromptInput{"a"}, core::TokenInput{{1}}};
  EXPECT_TRUE(validate(request));
  request.inputs[1] = core::TokenInput{{-1}};
  EXPECT_EQ(param_of(validate(request)), "inputs[1]");
  request.inputs[1] = core::TokenInput{};
  EXPECT_EQ(param_of(validate(request)), "inputs[1]");
  request.inputs[1] = core::PromptInput{""};
  EXPECT_EQ(param_of(validate(request)), "inputs[1]");
  request.inputs[1] = core::PromptInput{"a\xff"};
  EXPECT_EQ(param_of(validate(request)), "inputs[1]");
  request.inputs[1] = core::PromptInput{std::string((4U << 20U) + 1, 'a')};
  EXPECT_EQ(param_of(validate(request)), "inputs[1]");
  request.inputs.assign(2049, core::PromptInput{"a"});
  EXPECT_EQ(param_of(validate(request)), "inputs");
  request.inputs.resize(2048);
  EXPECT_TRUE(validate(request));
  request.dimensions = 0;
  EXPECT_EQ(param_of(validate(request)), "dimensions");
  request.model.clear();
  EXPECT_EQ(param_of(validate(request)), "model");
}

TEST(Validate, Tokenizing) {
  core::TokenizeRequest request;
  request.model = "demo";
  EXPECT_TRUE(validate(request)) << "an empty text has no tokens";
  request.input = core::TextInput{"\xc3"};
  EXPECT_EQ(param_of(validate(request)), "text");
  request.input = core::ChatInput{};
  EXPECT_EQ(param_of(validate(request)), "chat.messages_json");

  core::DetokenizeRequest back;
  back.model = "demo";
  back.ids = {1, -1};
  EXPECT_EQ(param_of(validate(back)), "ids");
  back.ids.assign((1U << 20U) + 1, 1);
  EXPECT_EQ(param_of(validate(back)), "ids");
}

}  // namespace
}  // namespace berth::gateway
