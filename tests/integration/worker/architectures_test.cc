// Models of every architecture that the generator makes, in the real worker. What a prefix may be
// reused for depends on how a model keeps what it has read: cells, a sliding window, a state.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include "tests/integration/worker/worker_process.h"
#include "tests/models/adapter.h"
#include "tests/models/architectures.h"
#include "tests/models/draft_pair.h"
#include "tests/models/random_model.h"

namespace berth::test_models {

void PrintTo(const Architecture& kind, std::ostream* out) {
  *out << kind.name;
}

}  // namespace berth::test_models

namespace berth::worker {
namespace {

using test_models::Architecture;
using test_models::Memory;
using test_models::ModelOptions;
using Tokens = std::vector<int>;

constexpr std::uint32_t kAnswer = 24;  // tokens

// Words of the vocabulary, always the same for the same `start`, behind the token that begins a
// text.
Tokens some_words(int start, int count) {
  constexpr int kFirstWord = 300;
  constexpr int kWords = 700;
  Tokens ids = {1};
  for (int i = 0; i < count; ++i) ids.push_back(kFirstWord + (start + i * 37) % kWords);
  return ids;
}

Tokens joined(Tokens first, const Tokens& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

v1::GenerateRequest continuing(const Tokens& ids, std::uint32_t max_tokens = kAnswer) {
  v1::GenerateRequest request;
  request.mutable_tokens()->mutable_ids()->Add(ids.begin(), ids.end());
  request.mutable_sampling()->set_temperature(0);
  request.set_max_tokens(max_tokens);
  return request;
}

class Models : public testing::Test {
 protected:
  Models() {
    std::string pattern = "/tmp/berth-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~Models() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string written(const ModelOptions& options) const {
    const auto files =
        test_models::write_model(options, directory_ + "/" + options.architecture + ".gguf");
    EXPECT_TRUE(files.has_value());
    return files ? files->front() : "";
  }

  // What a worker says that has read nothing before.
  static Outcome fresh_answer(const std::string& model, const Tokens& prompt) {
    WorkerProcess worker(
        {model, {"--context", "512", "--kv-type", "f32", "--flash-attention", "off"}});
    const auto event = worker.wait_loaded();
    EXPECT_TRUE(event && event->has_ready()) << worker.log();
    return worker.generate(continuing(prompt));
  }

  std::string directory_;
};

class Generating : public Models, public testing::WithParamInterface<Architecture> {
 protected:
  [[nodiscard]] std::string model() const {
    return written({.architecture = std::string(GetParam().name),
                    .layers = 4,
                    .weights = test_models::TensorType::kF32});
  }
};

std::string test_name(const testing::TestParamInfo<Architecture>& info) {
  std::string name(info.param.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::vector<Architecture> architectures(bool generating) {
  std::vector<Architecture> kinds;
  for (const Architecture& kind : test_models::all_architectures()) {
    if (kind.generates == generating) kinds.push_back(kind);
  }
  return kinds;
}

// Texts are compared although batches have other shapes, which changes the order of sums. Without
// flash attention, whose results on processors depend on the shape by more, and with f32 for
// weights and cache that is a millionth of a logit, and the best token is further ahead.

// The worker that has proven a full micro-batch answers as one that has not (L6).
TEST_P(Generating, GreedyIsRepeatable) {
  const auto path = model();
  WorkerProcess worker({path,
                        {"--context", "512", "--kv-type", "f32", "--flash-attention", "off",
                         "--prove-micro-batch"}});
  const auto event = worker.wait_loaded();
  ASSERT_TRUE(event && event->has_ready()) << worker.log();
  EXPECT_EQ(event->ready().vocabulary(), 1024U);
  EXPECT_TRUE(event->ready().can_chat());
  const auto first = worker.generate(continuing(some_words(0, 40)));
  ASSERT_TRUE(first.done.has_value()) << first.status.error_message() << worker.log();
  EXPECT_EQ(first.done->usage().cached_tokens(), 0U);
  EXPECT_EQ(first.done->usage().completion_tokens(), kAnswer);
  EXPECT_EQ(first.done->finish_reason(), "length");
  const auto second = worker.generate(continuing(some_words(0, 40)));
  EXPECT_EQ(second.ids, first.ids);
  EXPECT_EQ(fresh_answer(path, some_words(0, 40)).ids, first.ids);
}

TEST_P(Generating, ContinuedPrefixGivesTheSameAsReadAnew) {
  const auto path = model();
  WorkerProcess worker(
      {path, {"--context", "512", "--kv-type", "f32", "--flash-attention", "off"}});
  ASSERT_TRUE(worker.wait_loaded().has_value());
  auto prompt = some_words(0, 40);  // longer than the sliding window
  for (int turn = 0; turn < 3; ++turn) {
    const auto known = turn == 0 ? 0 : prompt.size();
    prompt = joined(std::move(prompt), some_words(100 * turn, 5));
    const auto outcome = worker.generate(continuing(prompt));
    ASSERT_TRUE(outcome.done.has_value()) << outcome.status.error_message() << worker.log();
    EXPECT_EQ(outcome.ids, fresh_answer(path, prompt).ids) << "turn " << turn;
    EXPECT_EQ(outcome.done->usage().prompt_tokens(), prompt.size());
    EXPECT_LE(outcome.done->usage().cached_tokens(), known);
    // The answer's last token is said and not yet read. Only cells hold any prefix for certain.
    if (turn > 0 && GetParam().memory == Memory::kCells) {
      EXPECT_EQ(outcome.done->usage().cached_tokens(), known - 1);
    }
    prompt = joined(std::move(prompt), outcome.ids);
  }
}

TEST_P(Generating, PrefixThatPartsInTheMiddleGivesTheSameAsReadAnew) {
  const auto path = model();
  WorkerProcess worker(
      {path, {"--context", "512", "--kv-type", "f32", "--flash-attention", "off"}});
  ASSERT_TRUE(worker.wait_loaded().has_value());
  const auto whole = some_words(0, 100);
  ASSERT_TRUE(worker.generate(continuing(whole)).done.has_value()) << worker.log();
  // Further back than the window, within it, and nothing but the first token.
  for (const std::ptrdiff_t shared : {60, 20, 1}) {
    const auto prompt = joined(Tokens(whole.begin(), whole.begin() + shared), some_words(350, 20));
    const auto outcome = worker.generate(continuing(prompt));
    ASSERT_TRUE(outcome.done.has_value()) << outcome.status.error_message() << worker.log();
    EXPECT_EQ(outcome.ids, fresh_answer(path, prompt).ids) << shared;
    EXPECT_LE(outcome.done->usage().cached_tokens(), shared) << shared;
    if (GetParam().memory == Memory::kCells) {
      EXPECT_EQ(outcome.done->usage().cached_tokens(), shared) << shared;
    }
  }
}

TEST_P(Generating, TwoAtOnceSayWhatEachSaysAlone) {
  const auto path = model();
  const auto first = some_words(0, 40);
  const auto second = some_words(500, 70);
  const auto first_alone = fresh_answer(path, first);
  const auto second_alone = fresh_answer(path, second);
  WorkerProcess worker(
      {path,
       {"--context", "1024", "--sequences", "2", "--kv-type", "f32", "--flash-attention", "off"}});
  const auto event = worker.wait_loaded();
  ASSERT_TRUE(event && event->has_ready()) << worker.log();
  for (int round = 0; round < 2; ++round) {
    auto other =
        std::async(std::launch::async, [&] { return worker.generate(continuing(second)); });
    const auto one = worker.generate(continuing(first));
    const auto two = other.get();
    ASSERT_TRUE(one.done && two.done) << one.status.error_message() << two.status.error_message();
    EXPECT_EQ(one.ids, first_alone.ids);
    EXPECT_EQ(two.ids, second_alone.ids);
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, Generating, testing::ValuesIn(architectures(true)),
                         test_name);

class NotGenerating : public Models, public testing::WithParamInterface<Architecture> {};

TEST_P(NotGenerating, LoadEndsInAClearAnswer) {
  WorkerProcess worker({written({.architecture = std::string(GetParam().name)}), {}});
  const auto event = worker.wait_loaded();
  ASSERT_TRUE(event.has_value()) << worker.log();
  if (event->has_load_failed()) {
    EXPECT_EQ(event->load_failed().class_(), "permanent");
    EXPECT_FALSE(event->load_failed().reason().empty());
  } else {
    EXPECT_FALSE(event->ready().can_chat());
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, NotGenerating, testing::ValuesIn(architectures(false)),
                         test_name);

TEST_F(Models, DecoderWithPoolingEndsItsLoadInAClearAnswer) {
  for (const auto pooling : {test_models::Pooling::kLast, test_models::Pooling::kMean}) {
    WorkerProcess worker({written({.architecture = "qwen3", .pooling = pooling}), {}});
    const auto event = worker.wait_loaded();
    ASSERT_TRUE(event.has_value()) << worker.log();
    EXPECT_TRUE(event->has_ready() || !event->load_failed().reason().empty());
  }
}

TEST_F(Models, EveryTypeOfWeightsGenerates) {
  using test_models::TensorType;
  for (const auto type : {TensorType::kF32, TensorType::kQ8_0, TensorType::kQ4_0, TensorType::kQ4_K,
                          TensorType::kQ5_K, TensorType::kQ6_K}) {
    const auto path =
        written({.embedding = 256, .feed_forward = 512, .vocabulary = 512, .weights = type});
    const auto outcome = fresh_answer(path, {1, 300, 301, 302});
    ASSERT_TRUE(outcome.done.has_value()) << test_models::type_name(type);
    EXPECT_EQ(outcome.ids.size(), kAnswer) << test_models::type_name(type);
  }
}

// The share of the target's tokens that the draft says, too, after what the target said before.
TEST_F(Models, DraftOftenAndNotAlwaysSaysTheSame) {
  const auto target_path = directory_ + "/target.gguf";
  const auto draft_path = directory_ + "/draft.gguf";
  ASSERT_TRUE(test_models::write_draft_pair({.layers = 6}, target_path, draft_path).has_value());
  WorkerProcess target(
      {target_path, {"--context", "512", "--kv-type", "f32", "--flash-attention", "off"}});
  WorkerProcess draft(
      {draft_path, {"--context", "512", "--kv-type", "f32", "--flash-attention", "off"}});
  ASSERT_TRUE(target.wait_loaded().has_value() && draft.wait_loaded().has_value());
  int agreed = 0;
  int all = 0;
  for (const int start : {0, 111, 222, 333}) {
    auto text = some_words(start, 10);
    for (const int id : target.generate(continuing(text)).ids) {
      const auto guess = draft.generate(continuing(text, 1)).ids;
      ++all;
      agreed += guess == Tokens{id} ? 1 : 0;
      text.push_back(id);
    }
  }
  RecordProperty("agreed", agreed);
  EXPECT_EQ(all, 4 * static_cast<int>(kAnswer));
  EXPECT_GT(agreed, all / 2);
  EXPECT_LT(agreed, all);
}

TEST_F(Models, ATargetSaysTheSameWithItsDraft) {
  const auto target_path = directory_ + "/target.gguf";
  const auto draft_path = directory_ + "/draft.gguf";
  ASSERT_TRUE(test_models::write_draft_pair({.layers = 6, .weights = test_models::TensorType::kF32},
                                            target_path, draft_path)
                  .has_value());
  WorkerProcess worker({target_path,
                        {"--context", "512", "--kv-type", "f32", "--flash-attention", "off",
                         "--draft", draft_path}});
  const auto event = worker.wait_loaded();
  ASSERT_TRUE(event && event->has_ready()) << worker.log();
  std::uint32_t drafted = 0;
  std::uint32_t accepted = 0;
  for (const int start : {0, 111, 222, 333}) {
    const auto outcome = worker.generate(continuing(some_words(start, 10)));
    ASSERT_TRUE(outcome.done.has_value()) << outcome.status.error_message() << worker.log();
    EXPECT_EQ(outcome.ids, fresh_answer(target_path, some_words(start, 10)).ids) << start;
    drafted += outcome.done->usage().drafted_tokens();
    accepted += outcome.done->usage().accepted_tokens();
  }
  EXPECT_GT(accepted, 0U);
  EXPECT_LT(accepted, drafted);
}

TEST_F(Models, AdapterChangesTheText) {
  const auto adapter_path = directory_ + "/adapter.gguf";
  for (const char* const name : {"llama", "qwen3", "gemma2", "mixtral"}) {
    const ModelOptions options = {.architecture = name};
    const auto path = written(options);
    ASSERT_TRUE(test_models::make_adapter(options)->write(adapter_path).has_value());
    WorkerProcess worker({path, {"--context", "512", "--adapter", adapter_path}});
    const auto event = worker.wait_loaded();
    ASSERT_TRUE(event && event->has_ready()) << worker.log();
    const auto outcome = worker.generate(continuing(some_words(0, 10)));
    ASSERT_TRUE(outcome.done.has_value()) << outcome.status.error_message();
    EXPECT_NE(outcome.ids, fresh_answer(path, some_words(0, 10)).ids) << name;
  }
}

TEST_F(Models, AdapterThatDoesNotFitEndsTheLoad) {
  const auto path = written({});
  const auto adapter_path = directory_ + "/adapter.gguf";
  for (const auto& info : test_models::all_adapter_faults()) {
    ASSERT_TRUE(test_models::make_adapter({}, {}, info.fault)->write(adapter_path).has_value());
    WorkerProcess worker({path, {"--adapter", adapter_path}});
    const auto event = worker.wait_loaded();
    ASSERT_TRUE(event && event->has_load_failed()) << info.name << worker.log();
    EXPECT_FALSE(event->load_failed().reason().empty()) << info.name;
    RecordProperty(std::string(info.name),
                   event->load_failed().class_() + ": " + event->load_failed().reason());
  }
}

}  // namespace
}  // namespace berth::worker
