#include "supervisor/model_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
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

TEST_F(CheckOfFiles, L25_ADraftMustBeTheOneThatTheCatalogueKnows) {
  EXPECT_TRUE(test_models::write_model({.layers = 2}, dir_.file("draft.gguf")));
  const ModelCheckResult result = check_model_files(*model_);
  ASSERT_FALSE(result.status);
  EXPECT_TRUE(result.files_changed);
  EXPECT_THAT(result.status.error().message, HasSubstr("its draft model or an adapter"));
  look();
  EXPECT_EQ(problem(), "");
}

TEST_F(CheckOfFiles, L25_HeadersMustMakeSense) {
  fs::resize_file(dir_.file("draft.gguf"), 100);
  look();
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

// What a thread does is done when the test says so.
class PatientCheck : public CheckOfFiles {
 protected:
  void ask() {
    answer_.reset();
    check_.check(model_, [this](Status status) { answer_ = std::move(status); });
    world_.clock.settle();
  }
  void work() {
    for (const auto& one : std::exchange(threads_, {})) one();
  }

  sim::SimWorld world_;
  std::vector<std::function<void()>> threads_;
  int told_ = 0;
  std::string asked_about_;
  bool architecture_known_ = true;
  bool architectures_wait_ = false;
  std::vector<std::function<void(bool)>> waiting_architectures_;
  std::optional<Status> answer_;
  ModelCheck check_{
      {.clock = world_.clock,
       .events = world_.events,
       .run_alone = [this](std::function<void()> work) { threads_.push_back(std::move(work)); },
       .files_changed = [this] { ++told_; },
       .knows =
           [this](const std::string& architecture, const std::function<void(bool)>& done) {
             asked_about_ = architecture;
             if (architectures_wait_) return waiting_architectures_.push_back(done);
             done(architecture_known_);
           }}};
};

TEST_F(PatientCheck, L25_WorksElsewhereAndTellsTheCatalogue) {
  const auto look_and_answer = [this] {
    ask();
    EXPECT_FALSE(answer_);
    work();
    EXPECT_FALSE(answer_) << "on the core strand";
    world_.clock.settle();
    ASSERT_TRUE(answer_);
  };
  look_and_answer();
  EXPECT_TRUE(*answer_);
  EXPECT_EQ(told_, 0);
  EXPECT_TRUE(test_models::write_model({.layers = 3, .shards = 3}, dir_.file("models/m.gguf")));
  look_and_answer();
  EXPECT_FALSE(*answer_);
  EXPECT_EQ(told_, 1);
}

TEST_F(PatientCheck, L25_TheArchitectureMustBeKnownToTheWorker) {
  ask();
  work();
  world_.clock.settle();
  EXPECT_TRUE(answer_ && *answer_);
  EXPECT_EQ(asked_about_, model_->architecture);
  architecture_known_ = false;
  ask();
  work();
  world_.clock.settle();
  ASSERT_TRUE(answer_ && !*answer_);
  EXPECT_THAT(answer_->error().message, AllOf(HasSubstr("no other model unloaded for it"),
                                              HasSubstr("does not know its architecture 'llama'")));
}

TEST_F(PatientCheck, L25_ADiskThatHangsHoldsALoadUpForTenSeconds) {
  ask();
  world_.clock.advance(std::chrono::milliseconds(9900));
  EXPECT_FALSE(answer_);
  world_.clock.advance(std::chrono::milliseconds(200));
  ASSERT_TRUE(answer_);
  EXPECT_TRUE(*answer_) << "the load is tried";
  ASSERT_EQ(world_.events.count("model.check_late"), 1U);
  EXPECT_EQ(sim::SimEvents::field(*world_.events.last("model.check_late"), "model"), "m");
  ask();
  EXPECT_TRUE(answer_) << "no second look is begun behind the first";
  EXPECT_EQ(threads_.size(), 1U);
  work();
  world_.clock.settle();
  ask();
  EXPECT_FALSE(answer_) << "it is looked again as soon as the disk answers";
  work();
  world_.clock.settle();
  EXPECT_TRUE(answer_);
  EXPECT_EQ(world_.events.count("model.check_late"), 1U);
}

TEST_F(PatientCheck, L25_OneLookAnswersAllWhoAsked) {
  int answers = 0;
  for (int i = 0; i < 3; ++i) {
    check_.check(model_, [&](const Status& status) { answers += status ? 1 : 100; });
  }
  EXPECT_EQ(threads_.size(), 1U);
  work();
  world_.clock.settle();
  EXPECT_EQ(answers, 3);
}

TEST_F(PatientCheck, L25_AtTheEndOfTheProgramNobodyWaitsForALook) {
  ask();
  check_.stop();
  world_.clock.settle();
  EXPECT_TRUE(answer_ && *answer_);
  ask();
  EXPECT_TRUE(answer_ && *answer_);
  work();
  world_.clock.settle();
  EXPECT_EQ(world_.events.count("model.check_late"), 0U);
}

TEST_F(PatientCheck, L25_EachAnswerIsAboutTheModelThatWasAskedAbout) {
  std::optional<Status> first;
  check_.check(model_, [&](Status status) { first = std::move(status); });
  work();  // before the files are others
  fs::resize_file(dir_.file("draft.gguf"), 100);
  look();
  ask();
  EXPECT_TRUE(first && *first);
  EXPECT_FALSE(answer_);
  ASSERT_EQ(threads_.size(), 1U);
  work();
  world_.clock.settle();
  ASSERT_TRUE(answer_);
  EXPECT_THAT(answer_->error().message, HasSubstr("draft.gguf"));
}

TEST_F(PatientCheck, L25_ModelsOfOneNameAreLookedAtOnceEach) {
  architectures_wait_ = true;
  const auto ask_about = [&](const std::shared_ptr<const catalog::Model>& model, int& answers) {
    check_.check(model, [&answers](const Status& status) { answers += status ? 1 : 100; });
  };
  int answers = 0;
  for (int i = 0; i < 3; ++i) {
    ask_about(model_, answers);
    look();
  }
  int looks = 0;
  while (!threads_.empty()) {
    ASSERT_LE(++looks, 3);
    work();
    world_.clock.settle();
  }
  EXPECT_EQ(looks, 3);
  EXPECT_EQ(answers, 0);
  for (const auto& done : waiting_architectures_) done(true);
  EXPECT_EQ(answers, 3);
}

}  // namespace
}  // namespace berth
