#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/integration/engine/loading.h"
#include "tests/models/adapter.h"

namespace berth::worker {
namespace {

using test_models::ModelOptions;
using test_models::Pooling;
using testing::HasSubstr;
using Inputs = std::vector<std::vector<TokenId>>;
using Embedding = std::vector<float>;

ModelOptions model(const std::string& architecture) {
  ModelOptions options;
  options.architecture = architecture;
  return options;
}

std::vector<Embedding> embed(Engine& engine, const Inputs& inputs) {
  std::vector<Embedding> embeddings;
  std::string error;
  EXPECT_EQ(engine.embed(inputs, embeddings, error), DecodeOutcome::kDone) << error;
  EXPECT_EQ(embeddings.size(), inputs.size());
  return embeddings;
}

// Cosine of the angle between two.
double likeness(const Embedding& a, const Embedding& b) {
  double product = 0;
  double a_square = 0;
  double b_square = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    a_square += static_cast<double>(a[i]) * static_cast<double>(a[i]);
    b_square += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return product / std::sqrt(a_square * b_square);
}

std::string refusal(Engine& engine, const Inputs& inputs) {
  std::vector<Embedding> embeddings;
  std::string error;
  EXPECT_EQ(engine.embed(inputs, embeddings, error), DecodeOutcome::kFailed);
  EXPECT_TRUE(embeddings.empty());
  return error;
}

TEST(Embedding, EncodersOnlyEmbed) {
  for (const auto* const architecture : {"bert", "nomic-bert"}) {
    const auto engine = load_well({.model_path = random_file(model(architecture)), .sequences = 3});
    const auto& facts = engine->facts();
    EXPECT_EQ(facts.purpose, Purpose::kEmbed) << architecture;
    EXPECT_EQ(facts.pooling, "mean");
    EXPECT_EQ(facts.embedding_size, 64U);
    EXPECT_EQ(facts.window, 1024U);
    EXPECT_EQ(facts.batch, facts.window);
    EXPECT_FALSE(facts.shares_cells);
    const auto one = embed(*engine, {some_tokens(20)});
    EXPECT_EQ(one.at(0).size(), facts.embedding_size);
    std::string error;
    EXPECT_EQ(engine->decode(std::vector<BatchItem>{{0, 1, 0, true}}, error),
              DecodeOutcome::kFailed);
    EXPECT_EQ(engine->keep_prefix(0, 1), 0U);
  }
}

TEST(Embedding, InputsOfOneBatchDoNotSeeEachOther) {
  for (const auto* const architecture : {"bert", "llama", "mamba", "gemma2"}) {
    const auto engine = load_well({.model_path = random_file(model(architecture)),
                                   .sequences = 3,
                                   .purpose = Purpose::kEmbed});
    const Inputs inputs = {some_tokens(20, 1), some_tokens(3, 2), some_tokens(90, 3)};
    const auto together = embed(*engine, inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto alone = embed(*engine, {inputs[i]});
      EXPECT_GT(likeness(together.at(i), alone.at(0)), 0.9999) << architecture << " " << i;
    }
    EXPECT_LT(likeness(together.at(0), together.at(2)), 0.9999) << architecture;
  }
}

TEST(Embedding, TheWholeWindowIsOneInput) {
  const auto engine = load_well(
      {.model_path = random_file(model("llama")), .context = 900, .purpose = Purpose::kEmbed});
  EXPECT_EQ(engine->facts().window, 900U);
  embed(*engine, {some_tokens(900)});
  EXPECT_THAT(refusal(*engine, {some_tokens(901)}), HasSubstr("901 tokens"));
}

// Behind the last position that an encoder knows, libllama would end the process.
TEST(Embedding, EncodersReadNoMoreThanTheyWereTrainedFor) {
  const auto engine = load_well({.model_path = random_file(model("bert")), .context = 4096});
  EXPECT_EQ(engine->facts().window, 1024U);
  embed(*engine, {some_tokens(1024)});
  EXPECT_THAT(refusal(*engine, {some_tokens(1025)}), HasSubstr("1025 tokens"));
}

TEST(Embedding, PoolingIsTheSettingsElseTheFilesElseWhatSuits) {
  const auto pooling = [](const ModelOptions& options, const std::string& setting) {
    const auto engine = load_well(
        {.model_path = random_file(options), .purpose = Purpose::kEmbed, .pooling = setting});
    embed(*engine, {some_tokens(5)});
    return engine->facts().pooling;
  };
  auto decoder = model("llama");
  EXPECT_EQ(pooling(decoder, ""), "last");
  EXPECT_EQ(pooling(decoder, "mean"), "mean");
  decoder.pooling = Pooling::kCls;
  EXPECT_EQ(pooling(decoder, ""), "cls");
  EXPECT_EQ(pooling(decoder, "last"), "last");
  auto encoder = model("bert");
  encoder.pooling = Pooling::kCls;
  EXPECT_EQ(pooling(encoder, ""), "cls");
  encoder.pooling = Pooling::kNone;
  EXPECT_EQ(pooling(encoder, ""), "mean");
}

TEST(Embedding, APoolingTypeInTheFileIsEnough) {
  auto options = model("llama");
  options.pooling = Pooling::kLast;
  const auto engine = load_well({.model_path = random_file(options)});
  EXPECT_EQ(engine->facts().purpose, Purpose::kEmbed);
  EXPECT_EQ(engine->facts().pooling, "last");
}

// A file that says of an encoder that it reads from left to right, and no pooling: that it can only
// embed shows when its context has no memory.
std::string file_that_hides_its_kind() {
  auto hidden = test_models::make_model(model("bert"));
  EXPECT_TRUE(hidden);
  hidden->remove_key("bert.pooling_type");
  hidden->remove_key("bert.attention.causal");
  hidden->set_bool("bert.attention.causal", true);
  auto path = scratch_file("hidden.gguf");
  EXPECT_TRUE(hidden->write(path));
  return path;
}

TEST(Embedding, AFileThatHidesItsKindIsServedAsTheSettingsSay) {
  const auto path = file_that_hides_its_kind();
  const auto plain = load_well({.model_path = path});
  EXPECT_EQ(plain->facts().purpose, Purpose::kEmbed);
  EXPECT_EQ(plain->facts().pooling, "mean");
  const auto set = load_well({.model_path = path, .pooling = "cls"});
  EXPECT_EQ(set->facts().pooling, "cls");
  EXPECT_LT(likeness(embed(*plain, {some_tokens(9)}).at(0), embed(*set, {some_tokens(9)}).at(0)),
            0.9999);
}

TEST(Embedding, AFileThatHidesItsKindTakesNoDraft) {
  auto drafts = model("llama");
  drafts.tokenizer = test_models::Tokenizer::kWpm;
  const auto failure =
      failure_of({.model_path = file_that_hides_its_kind(), .draft_path = random_file(drafts)});
  EXPECT_EQ(failure.failure_class, "permanent");
  EXPECT_THAT(failure.reason, HasSubstr("no use for a draft"));
}

TEST(Embedding, RefusesWhatIsNoBatch) {
  const auto engine = load_well({.model_path = random_file(model("bert")), .sequences = 2});
  EXPECT_THAT(refusal(*engine, {}), HasSubstr("0 inputs"));
  EXPECT_THAT(refusal(*engine, {{}}), HasSubstr("without tokens"));
  EXPECT_THAT(refusal(*engine, Inputs(3, some_tokens(2))), HasSubstr("3 inputs"));
  EXPECT_THAT(refusal(*engine, Inputs(2, some_tokens(600))), HasSubstr("1200 tokens"));
  EXPECT_FALSE(refusal(*engine, {{-1}}).empty());
  EXPECT_FALSE(refusal(*engine, {{1000000}}).empty());
  embed(*engine, {some_tokens(2)});  // still works

  const auto generator = load_well({.model_path = random_file(model("llama"))});
  EXPECT_EQ(generator->facts().purpose, Purpose::kGenerate);
  EXPECT_EQ(generator->facts().embedding_size, 0U);
  EXPECT_THAT(refusal(*generator, {some_tokens(2)}), HasSubstr("not served"));
}

TEST(Embedding, WhatIsNotFiniteIsEmptyAndHarmsNobodyLater) {
  constexpr TokenId kPoison = 200;
  auto sick = test_models::make_model(model("bert"));
  ASSERT_TRUE(sick) << sick.error().message;
  const auto width = model("bert").embedding;
  sick->remove_tensor("token_embd.weight");
  sick->add_tensor("token_embd.weight", test_models::TensorType::kF32,
                   {width, model("bert").vocabulary},
                   [](std::vector<float>& values, std::uint64_t row) {
                     for (std::size_t i = 0; i < values.size(); ++i) {
                       values[i] = row == kPoison ? std::numeric_limits<float>::quiet_NaN()
                                                  : static_cast<float>((row * 31 + i * 7) % 17) - 8;
                     }
                   });
  const auto path = scratch_file("sick.gguf");
  ASSERT_TRUE(sick->write(path));
  const auto engine = load_well({.model_path = path, .sequences = 2});
  const auto healthy = embed(*engine, {some_tokens(20)});
  EXPECT_FALSE(healthy[0].empty());
  const auto both = embed(*engine, {some_tokens(20), {1, kPoison, 2}});
  EXPECT_TRUE(both[1].empty());
  EXPECT_EQ(embed(*engine, {some_tokens(20)}), healthy);
}

TEST(Embedding, CanBeGivenUp) {
  for (const auto* const architecture : {"bert", "llama"}) {
    const auto engine =
        load_well({.model_path = random_file(model(architecture)), .purpose = Purpose::kEmbed});
    bool give_up = true;
    engine->set_abort_check([&give_up] { return give_up; });
    std::vector<Embedding> embeddings;
    std::string error;
    const Inputs inputs = {some_tokens(500)};
    EXPECT_EQ(engine->embed(inputs, embeddings, error), DecodeOutcome::kAborted) << architecture;
    give_up = false;
    embed(*engine, inputs);
  }
}

TEST(Embedding, RerankersAreRefused) {
  auto reranker = test_models::make_model(model("bert"));
  ASSERT_TRUE(reranker);
  reranker->remove_key("bert.pooling_type");
  reranker->set_u32("bert.pooling_type", 4);
  const auto path = scratch_file("reranker.gguf");
  ASSERT_TRUE(reranker->write(path));
  const auto failure = failure_of({.model_path = path});
  EXPECT_EQ(failure.failure_class, "permanent");
  EXPECT_THAT(failure.reason, HasSubstr("reranker"));
}

TEST(Embedding, AdaptersChangeIt) {
  const auto options = model("llama");
  const auto adapter = test_models::make_adapter(options);
  const auto path = scratch_file("adapter.gguf");
  ASSERT_TRUE(adapter && adapter->write(path));
  EngineSettings settings{.model_path = random_file(options), .purpose = Purpose::kEmbed};
  const auto plain = embed(*load_well(settings), {some_tokens(10)});
  settings.adapters = {{path, 1.0F}};
  EXPECT_LT(likeness(embed(*load_well(settings), {some_tokens(10)}).at(0), plain.at(0)), 0.9999);
}

TEST(Embedding, T5IsRefused) {
  const auto failure = failure_of({.model_path = random_file(model("t5"))});
  EXPECT_EQ(failure.failure_class, "permanent");
  EXPECT_THAT(failure.reason, HasSubstr("encoder and a decoder"));
}

}  // namespace
}  // namespace berth::worker
