#include "tests/models/architectures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "common/gguf/gguf.h"
#include "tests/models/broken_models.h"
#include "tests/models/random_model.h"
#include "tests/unit/common/temp_dir.h"
#include "tests/unit/models/parsed.h"

namespace berth::test_models {
namespace {

using testing::HasSubstr;

ModelOptions of(const Architecture& kind) {
  ModelOptions options;
  options.architecture = std::string(kind.name);
  return options;
}

TEST(Architectures, EachIsReadAsWhatItIs) {
  test::TempDir dir;
  for (const Architecture& kind : all_architectures()) {
    const auto files = write_model(of(kind), dir.file(std::string(kind.name) + ".gguf"));
    ASSERT_TRUE(files.has_value()) << files.error().message;
    const auto summary = gguf::read_model(files->front());
    ASSERT_TRUE(summary.has_value()) << summary.error().message;
    EXPECT_EQ(summary->architecture, kind.general) << kind.name;
    EXPECT_EQ(summary->layers, 2U) << kind.name;
    EXPECT_EQ(summary->embedding, 64U) << kind.name;
    EXPECT_EQ(summary->declared_context, 1024U) << kind.name;
    EXPECT_EQ(summary->vocabulary, 1024U) << kind.name;
    EXPECT_EQ(summary->has_chat_template, kind.generates) << kind.name;
    EXPECT_EQ(summary->embeds, kind.memory == Memory::kNone) << kind.name;
    EXPECT_LT(summary->file_bytes, 1'000'000U) << kind.name;
  }
}

TEST(Architectures, TheSameOptionsGiveTheSameBytes) {
  for (const Architecture& kind : all_architectures()) {
    ModelOptions options = of(kind);
    const std::string first = make_model(options)->bytes();
    EXPECT_EQ(make_model(options)->bytes(), first) << kind.name;
    options.seed = 2;
    EXPECT_NE(make_model(options)->bytes(), first) << kind.name;
  }
}

TEST(Architectures, EachHasAnotherSizeAndTypeToo) {
  for (const Architecture& kind : all_architectures()) {
    ModelOptions options = of(kind);
    options.layers = 5;
    options.heads = 8;
    options.kv_heads = 1;
    options.embedding = 256;
    options.feed_forward = 512;
    options.vocabulary = 2000;
    options.weights = TensorType::kQ4_K;
    const auto model = make_model(options);
    ASSERT_TRUE(model.has_value()) << model.error().message;
    const auto header = parsed(model->bytes());
    ASSERT_FALSE(header.tensors.empty()) << kind.name;
    const auto* const embedding = find_tensor(header, "token_embd.weight");
    ASSERT_NE(embedding, nullptr) << kind.name;
    EXPECT_EQ(gguf::type_name(embedding->type), "Q4_K") << kind.name;
  }
}

TEST(Architectures, NamesAreFoundAndOnlyThose) {
  std::set<std::string_view> names;
  for (const Architecture& kind : all_architectures()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    EXPECT_EQ(find_architecture(kind.name), &kind);
  }
  EXPECT_EQ(find_architecture("kestrel"), nullptr);
}

TEST(Architectures, EveryFaultCanBeMadeOfEach) {
  test::TempDir dir;
  for (const Architecture& kind : all_architectures()) {
    for (const FaultInfo& info : all_faults()) {
      const auto path = write_broken_model(info.fault, dir.file("x.gguf"), of(kind));
      ASSERT_TRUE(path.has_value()) << path.error().message;
      const auto summary = gguf::read_model(*path);
      EXPECT_EQ(summary.has_value(), !info.header_shows) << kind.name << " " << info.name;
      if (summary) continue;
      EXPECT_THAT(summary.error().message, HasSubstr(std::string(info.reader_says)));
    }
  }
}

TEST(Architectures, PoolingMakesADecoderEmbed) {
  ModelOptions options;
  options.architecture = "qwen3";
  options.pooling = Pooling::kLast;
  const auto header = parsed(make_model(options)->bytes());
  EXPECT_EQ(header.integer("qwen3.pooling_type"), 3U);
  options.pooling.reset();
  EXPECT_FALSE(parsed(make_model(options)->bytes()).integer("qwen3.pooling_type").has_value());
  options.architecture = "bert";
  EXPECT_EQ(parsed(make_model(options)->bytes()).integer("bert.pooling_type"), 1U);
}

TEST(Architectures, OptionsThatDoNotFitAreRefused) {
  ModelOptions experts;
  experts.experts_used = 5;
  EXPECT_THAT(check_options(experts).error().message, HasSubstr("expert"));
  ModelOptions heads;
  heads.architecture = "rwkv7";
  heads.embedding = 96;
  EXPECT_THAT(check_options(heads).error().message, HasSubstr("64"));
  ModelOptions blocks;
  blocks.weights = TensorType::kQ6_K;
  EXPECT_THAT(check_options(blocks).error().message, HasSubstr("multiples of 256"));
}

TEST(Architectures, ThePresetHasItsSize) {
  const auto options = preset("200m");
  ASSERT_TRUE(options.has_value());
  // Only the header: the data are 400 MB.
  const std::string header_bytes = make_model(*options)->header();
  MemorySource source(header_bytes);
  const auto header = gguf::parse_header(source, 500'000'000, "x");
  ASSERT_TRUE(header.has_value()) << header.error().message;
  std::uint64_t parameters = 0;
  for (const auto& tensor : header->tensors) parameters += tensor.elements;
  EXPECT_EQ(parameters / 1'000'000, 207U);
  EXPECT_FALSE(preset("7b").has_value());
}

}  // namespace
}  // namespace berth::test_models
