// The generator of test models itself.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "common/gguf/gguf.h"
#include "common/gguf/parse.h"
#include "tests/models/gguf_writer.h"
#include "tests/models/memory_source.h"
#include "tests/models/random_model.h"
#include "tests/unit/common/temp_dir.h"

namespace berth::test_models {
namespace {

using testing::HasSubstr;

TEST(TestModels, HalvesAreRoundedToNearestEven) {
  EXPECT_EQ(half_from_float(0.0F), 0x0000);
  EXPECT_EQ(half_from_float(-0.0F), 0x8000);
  EXPECT_EQ(half_from_float(1.0F), 0x3C00);
  EXPECT_EQ(half_from_float(-2.0F), 0xC000);
  EXPECT_EQ(half_from_float(65'504.0F), 0x7BFF);
  EXPECT_EQ(half_from_float(65'519.0F), 0x7BFF);
  EXPECT_EQ(half_from_float(65'520.0F), 0x7C00);
  EXPECT_EQ(half_from_float(1e30F), 0x7C00);
  EXPECT_EQ(half_from_float(1.0F + 0x1p-11F), 0x3C00);      // half way, to even
  EXPECT_EQ(half_from_float(1.0F + 3 * 0x1p-11F), 0x3C02);  // half way, to even
  EXPECT_EQ(half_from_float(0x1p-14F), 0x0400);             // smallest normal
  EXPECT_EQ(half_from_float(0x1p-24F), 0x0001);             // smallest subnormal
  EXPECT_EQ(half_from_float(0x1p-26F), 0x0000);
  EXPECT_EQ(half_from_float(std::nanf("")) & 0x7C00, 0x7C00);
}

TEST(TestModels, BlocksOfQ8HoldTheirLargestValue) {
  std::vector<float> values(32);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 16.0F;
  std::string out;
  encode_row(out, TensorType::kQ8_0, values);
  ASSERT_EQ(out.size(), 34U);
  EXPECT_EQ(static_cast<std::int8_t>(out[2]), -127);
  EXPECT_EQ(static_cast<std::int8_t>(out[2 + 16]), 0);
  EXPECT_EQ(static_cast<std::int8_t>(out[2 + 31]), 119);
  std::string zeros;
  encode_row(zeros, TensorType::kQ8_0, std::vector<float>(32));
  EXPECT_EQ(zeros, std::string(34, '\0'));
}

TEST(TestModels, TheSameSeedGivesTheSameBytes) {
  ModelOptions options;
  const std::string first = make_model(options)->bytes();
  EXPECT_EQ(make_model(options)->bytes(), first);
  options.seed = 2;
  EXPECT_NE(make_model(options)->bytes(), first);
}

TEST(TestModels, EveryKindIsReadByOurReader) {
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kQ8_0}) {
    for (const Tokenizer tokenizer : {Tokenizer::kBpe, Tokenizer::kSpm, Tokenizer::kNone}) {
      for (const bool tied : {false, true}) {
        ModelOptions options;
        options.weights = type;
        options.tokenizer = tokenizer;
        options.tied_output = tied;
        const std::string bytes = make_model(options)->bytes();
        MemorySource source(bytes);
        const auto header = gguf::parse_header(source, bytes.size(), "x");
        ASSERT_TRUE(header.has_value()) << header.error().message;
        EXPECT_EQ(header->tensors.size(), tied ? 20U : 21U);
      }
    }
  }
}

TEST(TestModels, OptionsThatDoNotFitAreRefused) {
  const auto message = [](auto&& change) {
    ModelOptions options;
    change(options);
    const auto model = make_model(options);
    return model ? std::string("no error") : model.error().message;
  };
  EXPECT_THAT(message([](ModelOptions& o) { o.layers = 0; }), HasSubstr("must not be 0"));
  EXPECT_THAT(message([](ModelOptions& o) { o.heads = 3; }), HasSubstr("multiple of the heads"));
  EXPECT_THAT(message([](ModelOptions& o) { o.kv_heads = 3; }), HasSubstr("KV heads"));
  EXPECT_THAT(message([](ModelOptions& o) { o.vocabulary = 100; }), HasSubstr("too small"));
  EXPECT_THAT(message([](ModelOptions& o) {
                o.weights = TensorType::kQ8_0;
                o.feed_forward = 100;
              }),
              HasSubstr("multiples of 32"));
}

TEST(TestModels, ShardsNeedATensorEach) {
  test::TempDir dir;
  ModelOptions options;
  options.shards = 1'000;
  EXPECT_FALSE(write_model(options, dir.file("x.gguf")).has_value());
  EXPECT_FALSE(write_model({}, dir.file("absent/x.gguf")).has_value());
}

TEST(TestModels, WordsAreDifferent) {
  std::set<std::string> words;
  for (std::uint32_t i = 0; i < 20'000; ++i) EXPECT_TRUE(words.insert(word(i)).second) << i;
}

TEST(TestModels, TheDemoModelIsWhole) {
  const auto model = gguf::read_model(BERTH_TINYCHAT);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ(model->architecture, "llama");
  EXPECT_EQ(model->parameters, 1'365'632U);
  EXPECT_EQ(model->declared_context, 8192U);
  EXPECT_TRUE(model->has_chat_template);
}

}  // namespace
}  // namespace berth::test_models
