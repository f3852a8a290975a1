#include "supervisor/model_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/catalog/catalog.h"
#include "tests/models/random_model.h"
#include "tests/simulation/sim_world.h"
#include "tests/unit/process/temp_dir.h"

namespace berth {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class CheckOfFiles : public ::testing::Test {
 protected:
  CheckOfFiles() {
    fs::create_directories(dir_.file("models"));
    EXPECT_TRUE(test_models::write_model({.shards = 3}, dir_.file("models/m.gguf")));
    EXPECT_TRUE(test_models::write_model({.layers = 1}, dir_.file("draft.gguf")));
    std::ofstream(dir_.file("t.jinja")) << "{{ messages }}";
    look();
  }

  // As the catalogue finds it now.
  void look() {
    const catalog::ConfigResult result = catalog::parse_config(
        "[models]\ndirs = [\"models\"]\n[model.m]\ndraft = \"draft.gguf\"\n"
        "chat_template = \"t.jinja\"\n",
        dir_.file("berth.toml"));
    ASSERT_TRUE(result.config);
    const auto found = catalog::scan(*result.config).catalog.find("m");
    ASSERT_TRUE(found);
    model_ = *found;
  }
  [[nodiscard]] std::string shard(int number) const {
    return dir_.file("models/m-0000" + std::to_string(number) + "-of-00003.gguf");
  }
  [[nodiscard]] std::string problem() const {
    const ModelCheckResult result = check_model_files(*model_);
    if (result.status) return {};
    EXPECT_EQ(result.status.error().reason, Reason::kLoadFailed);
    return result.status.error().message;
  }

  testing::TempDir dir_;
  std::shared_ptr<const catalog::Model> model_;
};

TEST_F(CheckOfFiles, L25_WhatIsWholeMayBeLoaded) {
  EXPECT_EQ(problem(), "");
}

TEST_F(CheckOfFiles, L25_EveryFileMustBeThere) {
  for (const std::string& path : {shard(3), dir_.file("draft.gguf"), dir_.file("t.jinja")}) {
    fs::rename(path, path + ".away");
    EXPECT_THAT(problem(), AllOf(HasSubstr("m was not loaded, and no other model unloaded"),
                                 HasSubstr(fs::path(path).filename().string() + " is not there")));
    fs::rename(path + ".away", path);
    look();
  }
  EXPECT_EQ(problem(), "");
}

TEST_F(CheckOfFiles, L25_FilesMustBeThoseThatTheCatalogueKnows) {
  EXPECT_TRUE(test_models::write_model({.layers = 3, .shards = 3}, dir_.file("models/m.gguf")));
  const ModelCheckResult result = check_model_files(*model_);
  ASSERT_FALSE(result.status);
  EXPECT_TRUE(result.files_changed);
  EXPECT_THAT(result.status.error().message, HasSubstr("looked at again"));
  ASSERT_TRUE(result.status.error().extras);
  EXPECT_TRUE(result.status.error().extras->retry_after_seconds);
  look();
  EXPECT_EQ(problem(), "");
}

TEST_F(CheckOfFiles, L25_HeadersMustMakeSense) {
  fs::resize_file(dir_.file("draft.gguf"), 100);
  EXPECT_THAT(problem(), HasSubstr("draft.gguf"));
}

TEST_F(CheckOfFiles, L25_WhatItTakesMustBeKnown) {
  auto odd = std::make_shared<catalog::Model>(*model_);
  odd->parts = nullptr;
  odd->parts_problem = "Its header does not tell.";
  model_ = odd;
  EXPECT_THAT(problem(), HasSubstr("header does not tell."));
}

TEST_F(CheckOfFiles, L25_ACommandHasNoFilesOfItsOwn) {
  auto command = std::make_shared<catalog::Model>();
  command->settings.kind = catalog::Kind::kCommand;
  model_ = command;
  EXPECT_EQ(problem(), "");
}

TEST_F(CheckOfFiles, L25_WorksOnThePoolAndTellsTheCatalogue) {
  sim::SimWorld world;
  std::vector<std::function<void()>> pool;
  int told = 0;
  ModelCheck check(
      {.clock = world.clock,
       .run_blocking = [&](std::function<void()> work) { pool.push_back(std::move(work)); },
       .files_changed = [&] { ++told; }});
  std::optional<Status> answer;
  const auto ask = [&] {
    answer.reset();
    check.check(model_, [&](Status status) { answer = std::move(status); });
    world.clock.settle();
    EXPECT_FALSE(answer);
    for (const auto& work : std::exchange(pool, {})) work();
    EXPECT_FALSE(answer) << "on the core strand";
    world.clock.settle();
    ASSERT_TRUE(answer);
  };
  ask();
  EXPECT_TRUE(*answer);
  EXPECT_EQ(told, 0);
  EXPECT_TRUE(test_models::write_model({.layers = 3, .shards = 3}, dir_.file("models/m.gguf")));
  ask();
  EXPECT_FALSE(*answer);
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace berth
