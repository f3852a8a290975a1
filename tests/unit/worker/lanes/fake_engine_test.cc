#include "tests/fake_engine/fake_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/fake_engine/fake_load.h"
#include "tests/fake_engine/fake_settings.h"

namespace berth::worker {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

std::vector<TokenId> tokens(std::string_view text) {
  return {text.begin(), text.end()};
}

TEST(FakeSettings, AreReadFromTheTextOfAModel) {
  FakeSettings settings;
  const std::string text =
      "# berth fake model\nprompt_speed = 1500.5\n\n# a comment\nload_ms=20\nendless = true\n"
      "control_token = <|im_start|>\ncontrol_token = <|im_end|>\npurpose = embed\n"
      "load_failure = crash\nload_failure_reason = tensor 'a' is not there\n";
  ASSERT_TRUE(read_fake_settings(text, settings).has_value());
  EXPECT_EQ(settings.prompt_speed, 1500.5);
  EXPECT_EQ(settings.load, milliseconds(20));
  EXPECT_TRUE(settings.endless);
  EXPECT_THAT(settings.control_tokens, testing::ElementsAre("<|im_start|>", "<|im_end|>"));
  EXPECT_EQ(settings.purpose, Purpose::kEmbed);
  EXPECT_EQ(settings.load_failure, FakeFailure::kCrash);
  EXPECT_EQ(settings.load_failure_reason, "tensor 'a' is not there");
}

TEST(FakeSettings, WhatCannotBeReadIsNamed) {
  const auto problem = [](std::string_view text) {
    FakeSettings settings;
    const auto read = read_fake_settings(text, settings);
    return read ? std::string() : read.error().message;
  };
  EXPECT_THAT(problem("\nspede = 3"), HasSubstr("line 2: there is no setting \"spede\""));
  EXPECT_THAT(problem("batch = many"), HasSubstr("\"many\" is no value of batch"));
  EXPECT_THAT(problem("prompt_speed = nan"), HasSubstr("prompt_speed"));
  EXPECT_THAT(problem("prompt_speed = -1"), HasSubstr("prompt_speed"));
  EXPECT_THAT(problem("endless"), HasSubstr("has no ="));
}

TEST(FakeSettings, CanStandWithinAnotherFile) {
  std::string file = "GGUF";
  file.append(1000, '\0');
  file += "# berth fake model\nseed = 5\n# end";
  file.append(1000, '\0');
  const auto text = find_fake_settings(file);
  ASSERT_TRUE(text.has_value());
  FakeSettings settings;
  EXPECT_TRUE(read_fake_settings(*text, settings).has_value());
  EXPECT_EQ(settings.seed, 5U);
  EXPECT_FALSE(find_fake_settings("GGUF").has_value());
}

TEST(FakeSettings, OnlyALineOfItsOwnEndsThem) {
  const std::string begin = "# berth fake model\nseed = 5\n";
  const std::string comments = "# endless = true\n## end\nload_failure_reason = a # end\n # end\n";
  for (const std::string end : {"# end\nwindow = 7\n", "# end\r\nwindow = 7\n"}) {
    EXPECT_EQ(find_fake_settings("x" + begin + comments + end), begin + comments);
  }
  EXPECT_EQ(find_fake_settings(begin + comments + "batch = 3"), begin + comments + "batch = 3");
  EXPECT_EQ(find_fake_settings(begin + "# end"), begin);
}

class Observer final : public LoadObserver {
 public:
  void on_progress(const LoadProgress& progress) override {
    if (phases.empty() || phases.back() != progress.phase) phases.emplace_back(progress.phase);
  }
  void on_vocabulary(const Engine& engine) override { vocabulary = &engine; }
  [[nodiscard]] bool cancelled() const override { return cancel; }
  std::vector<std::string> phases;
  const Engine* vocabulary = nullptr;
  bool cancel = false;
};

class FakeLoad : public testing::Test {
 protected:
  FakeLoad() {
    std::string pattern = "/tmp/berth-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~FakeLoad() override { std::filesystem::remove_all(directory_); }
  auto load(const std::string& text, EngineSettings settings = {}) {
    settings.model_path = directory_ + "/model";
    std::ofstream(settings.model_path) << text;
    return load_fake_engine(settings, observer_);
  }
  std::string directory_;
  Observer observer_;
};

TEST_F(FakeLoad, TakesItsSettingsFromTheModel) {
  EngineSettings settings;
  settings.sequences = 1000;
  settings.batch = 1024;
  const auto engine = load(
      "# berth fake model\nwindow = 128\nweights_bytes = 100000\nkv_bytes = 5000\n"
      "touch_memory = true\nload_ms = 6\ncontrol_token = <end>\n",
      settings);
  ASSERT_TRUE(engine.has_value());
  const auto& facts = (*engine)->facts();
  EXPECT_EQ(facts.window, 128U);
  EXPECT_EQ(facts.sequences, 1000U);
  EXPECT_EQ(facts.batch, 1024U);
  ASSERT_EQ(facts.memory.size(), 1U);
  EXPECT_EQ(facts.memory[0].weights_bytes, 100000U);
  EXPECT_EQ((*engine)->control_token("<end>"), FakeEngine::kEnd + 1);
  EXPECT_THAT(observer_.phases, testing::ElementsAre("starting", "weights", "context"));
  EXPECT_EQ(observer_.vocabulary, engine->get());
}

TEST_F(FakeLoad, FailsAsItIsTold) {
  const auto engine = load(
      "# berth fake model\nload_failure_phase = weights\nload_failure_class = resource\n"
      "load_failure_reason = no memory\n");
  ASSERT_FALSE(engine.has_value());
  EXPECT_EQ(engine.error().failure_class, "resource");
  EXPECT_EQ(engine.error().reason, "no memory");
  const auto wrong = load("# berth fake model\nnonsense = 1\n");
  ASSERT_FALSE(wrong.has_value());
  EXPECT_THAT(wrong.error().reason, HasSubstr("nonsense"));
}

TEST_F(FakeLoad, CanBeCancelled) {
  observer_.cancel = true;
  const auto engine = load("# berth fake model\nload_ms = 60000\n");
  ASSERT_FALSE(engine.has_value());
  EXPECT_TRUE(engine.error().cancelled);
}

TEST(FakeEngine, ASpeedIsWaitedForAndTheAbortCheckIsAskedMeanwhile) {
  FakeSettings settings;
  settings.prompt_speed = 100;
  settings.generation_speed = 10;
  FakeEngine engine(settings);
  Duration passed{};
  int checks = 0;
  engine.pause = [&](Duration time) { passed += time; };
  engine.set_abort_check([&] {
    ++checks;
    return passed >= milliseconds(150);
  });
  const std::array prompt = {BatchItem{0, 'a', 0, false}, BatchItem{0, 'b', 1, true}};
  std::string problem;
  // 10 ms of a prompt's token, and 100 ms of an answer's.
  EXPECT_EQ(engine.decode(prompt, problem), DecodeOutcome::kDone);
  EXPECT_EQ(passed, milliseconds(110));
  EXPECT_GT(checks, 50);
  const std::array next = {BatchItem{0, 'c', 2, true}};
  EXPECT_EQ(engine.decode(next, problem), DecodeOutcome::kAborted);
  EXPECT_EQ(passed, milliseconds(150));
}

TEST(FakeEngine, TheAnswerDependsOnSeedsAndPromptOnly) {
  const auto answer = FakeEngine::answer_to(tokens("a prompt"));
  EXPECT_EQ(FakeEngine::answer_to(tokens("a prompt")), answer);
  EXPECT_NE(FakeEngine::answer_to(tokens("another")), answer);
  EXPECT_NE(FakeEngine::answer_to(tokens("a prompt"), 1), answer);
  EXPECT_NE(FakeEngine::answer_to(tokens("a prompt"), 0, 1), answer);
  const auto endless = FakeEngine::endless_answer_to(tokens("a prompt"), answer.size() + 100);
  EXPECT_EQ(endless.size(), answer.size() + 100);
  EXPECT_EQ(endless.substr(0, answer.size() + 1), answer + "z");
}

TEST(FakeEngine, WrongUseIsFound) {
  FakeSettings settings;
  settings.cells = 4;
  FakeEngine engine(settings);
  std::vector<std::string> found;
  engine.on_violation = [&](const std::string& what) { found.push_back(what); };
  std::string problem;
  const std::array gap = {BatchItem{0, 'a', 3, true}};
  engine.decode(gap, problem);
  EXPECT_THAT(found, testing::ElementsAre(HasSubstr("a gap in sequence 0")));
  found.clear();
  engine.keep_prefix(0, 2);
  EXPECT_THAT(found, testing::ElementsAre(HasSubstr("holds 1 tokens, not 2")));
  found.clear();
  const std::array many = {BatchItem{0, 'a', 1}, BatchItem{0, 'a', 2}, BatchItem{0, 'a', 3},
                           BatchItem{0, 'a', 4}};
  engine.decode(many, problem);
  EXPECT_THAT(found, testing::ElementsAre(HasSubstr("more cells")));
  found.clear();
  FakeEngine::FakeSampler sampler;
  EXPECT_FALSE(engine.sample(sampler, 0).has_value());
  EXPECT_THAT(found, testing::ElementsAre(HasSubstr("no output")));
}

TEST(FakeEngineDeathTest, WrongUseEndsTheProcessWhereNobodyListens) {
  FakeEngine engine(1);
  EXPECT_DEATH(engine.keep_prefix(0, 5), "fake engine: sequence 0 holds 0 tokens");
}

TEST(FakeEngine, FailsAndRecoversAtABatch) {
  FakeSettings settings;
  settings.failing_batch = 2;
  FakeEngine engine(settings);
  std::string problem;
  const std::array one = {BatchItem{0, 'a', 0, true}};
  EXPECT_EQ(engine.decode(one, problem), DecodeOutcome::kDone);
  const std::array two = {BatchItem{0, 'a', 1, true}};
  EXPECT_EQ(engine.decode(two, problem), DecodeOutcome::kFailed);
  const std::array three = {BatchItem{0, 'a', 2, true}};
  EXPECT_EQ(engine.decode(three, problem), DecodeOutcome::kDone);
}

TEST(FakeEngine, GivesLogprobsEmbeddingsAndControlTokens) {
  FakeSettings settings;
  settings.control_tokens = {"<|user|>"};
  FakeEngine engine(settings);
  SamplingSettings sampling;
  sampling.top_logprobs = 3;
  const auto sampler = engine.make_sampler(sampling);
  ASSERT_TRUE(sampler.has_value());
  std::string problem;
  const std::array one = {BatchItem{0, 'a', 0, true}};
  engine.decode(one, problem);
  const auto sampled = engine.sample(**sampler, 0);
  ASSERT_TRUE(sampled.has_value());
  ASSERT_EQ(sampled->top.size(), 3U);
  EXPECT_EQ(sampled->top[0].token, sampled->token);
  EXPECT_GT(sampled->top[0].logprob, sampled->top[1].logprob);

  const std::array parts = {PromptPart{"<|user|>a", false}, PromptPart{"<|user|>", true}};
  EXPECT_EQ(engine.tokenize_parts(parts, false)->size(), 2U + 8U);

  settings.purpose = Purpose::kEmbed;
  settings.embedding_size = 8;
  FakeEngine embeds(settings);
  const std::vector<std::vector<TokenId>> inputs = {{1, 2}, {1, 2}, {2, 1}};
  embeds.mutable_facts().sequences = 3;
  std::vector<std::vector<float>> out;
  EXPECT_EQ(embeds.embed(inputs, out, problem), DecodeOutcome::kDone);
  ASSERT_EQ(out.size(), 3U);
  EXPECT_EQ(out[0], out[1]);
  EXPECT_NE(out[0], out[2]);
  float square = 0;
  for (const auto number : out[0]) square += number * number;
  EXPECT_NEAR(square, 1, 1e-5);
}

}  // namespace
}  // namespace berth::worker
