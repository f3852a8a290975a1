#include "supervisor/catalog/model_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "supervisor/catalog/catalog.h"
#include "tests/models/adapter.h"
#include "tests/models/random_model.h"
#include "tests/unit/catalog/scratch_dir.h"

namespace berth::catalog {
namespace {

namespace fs = std::filesystem;
using test_models::ModelOptions;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PartsOfModels : public ::testing::Test {
 protected:
  void put(const std::string& name, const ModelOptions& options = {}) {
    const std::string path = dir_ / name;
    fs::create_directories(fs::path(path).parent_path());
    ASSERT_TRUE(test_models::write_model(options, path));
  }
  void put_adapter(const std::string& name, const ModelOptions& options = {}) {
    auto adapter = test_models::make_adapter(options);
    ASSERT_TRUE(adapter);
    ASSERT_TRUE(adapter->write(dir_ / name));
  }
  Config config(const std::string& sections) {
    const ConfigResult result =
        parse_config("[models]\ndirs = [\"models\"]\n" + sections, dir_ / "berth.toml");
    EXPECT_TRUE(result.config) << result.problems.front().to_string();
    return result.config.value_or(Config());
  }
  ScanResult look(const std::string& sections = "", const ScanResult* before = nullptr) {
    return scan(config(sections), before != nullptr ? &before->catalog : nullptr);
  }
  static const Model& model(const ScanResult& result, std::string_view name) {
    const auto found = result.catalog.find(name);
    EXPECT_TRUE(found) << found.error().message;
    static const Model none;
    return found ? **found : none;
  }

  ScratchDir dir_;
};

TEST_F(PartsOfModels, M4_AreKnownOfEveryModel) {
  put("models/plain.gguf", {.layers = 3});
  put("models/split.gguf", {.layers = 5, .shards = 3});
  const ScanResult result = look();
  ASSERT_TRUE(model(result, "plain").parts) << model(result, "plain").parts_problem;
  EXPECT_EQ(model(result, "plain").parts->model.layers.size(), 3U);
  EXPECT_FALSE(model(result, "plain").parts->draft);
  EXPECT_EQ(model(result, "plain").parts->model.architecture, "llama");
  EXPECT_FALSE(model(result, "plain").parts->model.guessed);
  ASSERT_TRUE(model(result, "split").parts);
  const core::ModelShape& shape = model(result, "split").parts->model;
  EXPECT_EQ(shape.layers.size(), 5U);
  EXPECT_GT(shape.layers.back().weights, 0U) << "also those of the last file";
  EXPECT_EQ(shape.file_bytes, model(result, "split").file_bytes);
}

TEST_F(PartsOfModels, M4_DraftAndAdaptersBelongToThem) {
  put("models/one.gguf", {.layers = 4});
  put("draft.gguf", {.layers = 2});
  put_adapter("lora.gguf", {.layers = 4});
  const ScanResult result =
      look("[model.one]\ndraft = \"draft.gguf\"\nadapters = [\"lora.gguf\"]\n");
  const Model& one = model(result, "one");
  ASSERT_TRUE(one.parts) << one.parts_problem;
  ASSERT_TRUE(one.parts->draft);
  EXPECT_EQ(one.parts->draft->layers.size(), 2U);
  ASSERT_EQ(one.parts->adapters.size(), 1U);
  EXPECT_EQ(one.parts->adapters[0].layers.size(), 4U);
}

TEST_F(PartsOfModels, M4_ADraftOrAdapterThatCannotBeReadIsAProblem) {
  put("models/one.gguf");
  put("models/two.gguf");
  dir_.write("lora.gguf", "GGUF");
  const ScanResult result =
      look("[model.one]\ndraft = \"draft.gguf\"\n[model.two]\nadapters = [\"lora.gguf\"]\n");
  EXPECT_FALSE(model(result, "one").parts);
  EXPECT_THAT(model(result, "one").parts_problem,
              AllOf(HasSubstr("draft model"), HasSubstr("draft.gguf"), HasSubstr("`draft`")));
  EXPECT_THAT(model(result, "one").problem, IsEmpty());
  EXPECT_FALSE(model(result, "two").parts);
  EXPECT_THAT(model(result, "two").parts_problem,
              AllOf(HasSubstr("adapter"), HasSubstr("lora.gguf"), HasSubstr("`adapters`")));
}

TEST_F(PartsOfModels, M4_AHeaderThatDoesNotTellIsAProblem) {
  auto made = test_models::make_model({});
  ASSERT_TRUE(made);
  made->set_text("general.architecture", "unheard-of");  // its keys have other names now
  fs::create_directories(dir_ / "models");
  ASSERT_TRUE(made->write(dir_ / "models/odd.gguf"));
  const ScanResult result = look();
  EXPECT_FALSE(model(result, "odd").parts);
  EXPECT_THAT(model(result, "odd").parts_problem,
              AllOf(HasSubstr("odd.gguf"), HasSubstr("block_count")));
}

TEST_F(PartsOfModels, HeadersOfUnchangedFilesAreNotReadAgain) {
  put("draft.gguf", {.layers = 2});
  std::string sections;
  for (int i = 0; i < 200; ++i) {
    const std::string name = "m" + std::to_string(i);
    put("models/" + name + ".gguf", {.layers = 1, .vocabulary = 512});
    sections.append("[model.").append(name).append("]\ndraft = \"draft.gguf\"\n");
  }
  const ScanResult first = look(sections);
  const ScanResult again = look(sections, &first);
  ASSERT_EQ(again.catalog.models().size(), 200U);
  for (const auto& one : again.catalog.models()) {
    ASSERT_TRUE(one->parts) << one->parts_problem;
    EXPECT_EQ(one->parts, model(first, one->name).parts) << one->name;
  }
}

TEST_F(PartsOfModels, FollowTheFilesAndTheSettings) {
  put("models/one.gguf", {.layers = 4});
  put("draft.gguf", {.layers = 2});
  put("other.gguf", {.layers = 1});
  const std::string with_draft = "[model.one]\ndraft = \"draft.gguf\"\n";
  const ScanResult first = look(with_draft);
  ASSERT_TRUE(model(first, "one").parts);

  put("draft.gguf", {.layers = 3});
  const ScanResult second = look(with_draft, &first);
  EXPECT_EQ(model(second, "one").parts->draft->layers.size(), 3U);
  EXPECT_EQ(model(second, "one").parts->model.layers.size(), 4U);

  const ScanResult third = look("[model.one]\ndraft = \"other.gguf\"\n", &second);
  EXPECT_EQ(model(third, "one").parts->draft->layers.size(), 1U);

  put("models/one.gguf", {.layers = 2});
  const ScanResult fourth = look("", &third);
  EXPECT_EQ(model(fourth, "one").parts->model.layers.size(), 2U);
  EXPECT_FALSE(model(fourth, "one").parts->draft);

  fs::remove(dir_ / "draft.gguf");
  const ScanResult fifth = look(with_draft, &fourth);
  EXPECT_FALSE(model(fifth, "one").parts);
  put("draft.gguf", {.layers = 2});
  const ScanResult sixth = look(with_draft, &fifth);
  ASSERT_TRUE(model(sixth, "one").parts) << "it came back";
  EXPECT_THAT(model(sixth, "one").parts_problem, IsEmpty());
}

TEST_F(PartsOfModels, CommandsAndBrokenModelsHaveNone) {
  dir_.write("models/broken.gguf", "GGUF");
  const ScanResult result =
      look("[model.program]\nkind = \"command\"\ncommand = [\"p\", \"{port}\"]\n");
  for (const char* const name : {"broken", "program"}) {
    EXPECT_FALSE(model(result, name).parts) << name;
    EXPECT_THAT(model(result, name).parts_problem, IsEmpty()) << name;
  }
}

}  // namespace
}  // namespace berth::catalog
