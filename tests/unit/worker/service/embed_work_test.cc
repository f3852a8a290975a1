#include "worker/service/embed_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "tests/fake_engine/fake_engine.h"

namespace berth::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

EngineFacts facts() {
  EngineFacts made;
  made.window = 512;
  made.batch = 64;
  made.vocabulary = 1000;
  made.purpose = Purpose::kEmbed;
  made.embedding_size = 768;
  return made;
}

v1::EmbedRequest request(int inputs = 1) {
  v1::EmbedRequest made;
  for (int i = 0; i < inputs; ++i) made.add_inputs()->set_text("x");
  return made;
}

Error problem(const v1::EmbedRequest& made, const EngineFacts& model = facts()) {
  const auto checked = check_embed(made, model);
  EXPECT_FALSE(checked.has_value());
  if (checked) return {};
  EXPECT_EQ(checked.error().reason, Reason::kInvalidArgument);
  return checked.error();
}

TEST(EmbedCheck, TheWholeVectorNormalisedIsTheDefault) {
  const auto shape = check_embed(request(), facts());
  ASSERT_TRUE(shape.has_value());
  EXPECT_EQ(shape->dimensions, 768U);
  EXPECT_TRUE(shape->normalize);
}

TEST(EmbedCheck, AModelForGeneratingSaysHowToGetEmbeddings) {
  auto other = facts();
  other.purpose = Purpose::kGenerate;
  const auto error = problem(request(), other);
  EXPECT_EQ(error.extras->param, "model");
  EXPECT_THAT(error.message, HasSubstr("embeddings = true"));
}

TEST(EmbedCheck, InputsAreOneTo2048) {
  EXPECT_EQ(problem(request(0)).extras->param, "inputs");
  EXPECT_TRUE(check_embed(request(2048), facts()).has_value());
  EXPECT_THAT(problem(request(2049)).message, HasSubstr("2049"));
}

TEST(EmbedCheck, DimensionsAreTheModelsOrFewer) {
  auto made = request();
  for (const std::uint32_t count : {1U, 768U}) {
    made.set_dimensions(count);
    EXPECT_EQ(check_embed(made, facts())->dimensions, count);
  }
  for (const std::uint32_t count : {0U, 769U, 4294967295U}) {
    made.set_dimensions(count);
    EXPECT_EQ(problem(made).extras->param, "dimensions");
  }
}

TEST(EmbedCheck, TheAnswersSizeIsBounded) {
  auto wide = facts();
  wide.embedding_size = 16384;
  EXPECT_TRUE(check_embed(request(1024), wide).has_value());
  EXPECT_THAT(problem(request(1025), wide).message, HasSubstr("in pieces"));
  auto made = request(1025);
  made.set_dimensions(256);  // is computed whole all the same
  EXPECT_THAT(problem(made, wide).message, HasSubstr("16384 numbers"));
}

TEST(EmbedCheck, TheLargestAnswerFitsIntoAMessage) {
  v1::EmbedResponse largest;
  for (int i = 0; i < EmbedBounds::kInputs; ++i) {
    auto& embedding = *largest.add_embeddings();
    embedding.mutable_values()->Resize(
        static_cast<int>(EmbedBounds::kAnswerBytes / sizeof(float) / EmbedBounds::kInputs), 1);
    embedding.set_tokens(1 << 20);
  }
  EXPECT_LT(largest.ByteSizeLong(), std::size_t{65} << 20U);
}

Error refused(const v1::EmbedInput& input) {
  FakeEngine engine(1);
  const auto tokens = embed_tokens(engine, input, 3, engine.token_bytes().bound);
  EXPECT_FALSE(tokens.has_value());
  return tokens ? Error() : tokens.error();
}

TEST(EmbedCheck, BadInputsAreNamed) {
  v1::EmbedInput input;
  EXPECT_EQ(refused(input).extras->param, "inputs[3]");
  input.set_text("");
  EXPECT_THAT(refused(input).message, HasSubstr("empty"));
  input.set_text("ab\xff");
  EXPECT_THAT(refused(input).message, HasSubstr("byte 2"));
  input.set_text(std::string(EmbedBounds::kTextBytes + 1, 'x'));
  EXPECT_EQ(refused(input).reason, Reason::kInvalidArgument);
  input.mutable_tokens();
  EXPECT_THAT(refused(input).message, HasSubstr("empty"));
  input.mutable_tokens()->add_ids(-1);
  EXPECT_EQ(refused(input).extras->param, "inputs[3].tokens.ids[0]");
}

TEST(EmbedCheck, T93_AnInputLongerThanABatchIsRefusedWithBothNumbers) {
  v1::EmbedInput input;
  for (int i = 0; i < 65; ++i) input.mutable_tokens()->add_ids('x');
  const auto error = refused(input);
  EXPECT_EQ(error.reason, Reason::kWindowExceeded);
  EXPECT_EQ(error.extras->param, "inputs[3]");
  EXPECT_EQ(error.extras->needed, 65U);
  EXPECT_EQ(error.extras->limit, 64U);
}

// Counts the texts that it is asked for.
class CountingEngine final : public FakeEngine {
 public:
  CountingEngine() : FakeEngine(1) {}
  [[nodiscard]] Result<std::vector<TokenId>> tokenize_whole(std::string_view text) const override {
    ++texts;
    return FakeEngine::tokenize_whole(text);
  }

  mutable int texts = 0;
};

TEST(EmbedInputs, T93_ATextThatCannotFitIsNotTokenized) {
  const CountingEngine engine;
  v1::EmbedInput input;
  input.set_text(std::string(129, 'x'));
  const auto tokens = embed_tokens(engine, input, 0, 2);
  ASSERT_FALSE(tokens.has_value());
  EXPECT_EQ(tokens.error().reason, Reason::kWindowExceeded);
  EXPECT_EQ(tokens.error().extras->needed, 65U);
  EXPECT_THAT(tokens.error().message, HasSubstr("at least 65 tokens"));
  EXPECT_EQ(engine.texts, 0);
}

TEST(EmbedInputs, AreTokenizedInTheirOrder) {
  const CountingEngine engine;
  v1::EmbedRequest made;
  made.add_inputs()->set_text("ab");
  made.add_inputs()->mutable_tokens()->add_ids('c');
  const auto inputs = embed_inputs(engine, made, 1, [] { return false; });
  ASSERT_TRUE(inputs.has_value());
  EXPECT_THAT(*inputs, ElementsAre(ElementsAre('a', 'b'), ElementsAre('c')));
}

TEST(EmbedInputs, AnAbandonedCallHoldsTheLineForOneInputAtMost) {
  const CountingEngine engine;
  const auto inputs = embed_inputs(engine, request(EmbedBounds::kInputs), 1,
                                   [&engine] { return engine.texts == 3; });
  EXPECT_FALSE(inputs.has_value());
  EXPECT_EQ(engine.texts, 3);
}

TEST(ShapeVector, CutsThenNormalises) {
  std::vector<float> vector{3, 4, 12};
  ASSERT_TRUE(shape_vector(vector, {2, true}).has_value());
  EXPECT_THAT(vector, ElementsAre(0.6F, 0.8F));
  vector = {3, 4, 12};
  ASSERT_TRUE(shape_vector(vector, {2, false}).has_value());
  EXPECT_THAT(vector, ElementsAre(3, 4));
}

TEST(ShapeVector, ZerosStayZeros) {
  std::vector<float> vector{0, 0, 5};
  ASSERT_TRUE(shape_vector(vector, {2, true}).has_value());
  EXPECT_THAT(vector, ElementsAre(0, 0));
}

TEST(ShapeVector, WhatIsNoNumberIsAnError) {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    std::vector<float> vector{1, bad};
    EXPECT_EQ(shape_vector(vector, {1, true}).error().reason, Reason::kInternal);
  }
  std::vector<float> shorter{1};
  EXPECT_FALSE(shape_vector(shorter, {2, true}).has_value());
}

RC_GTEST_PROP(ShapeVector, HasTheLengthOne, (std::vector<float> vector)) {
  for (auto& value : vector) {
    if (!std::isfinite(value)) value = 1;
  }
  RC_PRE(!vector.empty());
  const bool zero = std::all_of(vector.begin(), vector.end(), [](float v) { return v == 0; });
  RC_ASSERT(shape_vector(vector, {static_cast<std::uint32_t>(vector.size()), true}).has_value());
  double sum = 0;
  for (const float value : vector) sum += static_cast<double>(value) * value;
  RC_ASSERT(std::abs(sum - (zero ? 0 : 1)) < 1e-5);
}

}  // namespace
}  // namespace berth::worker
