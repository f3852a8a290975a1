#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/engine/loading.h"

namespace berth::worker {
namespace {

void hold(Engine& engine, SequenceId sequence, const std::vector<TokenId>& tokens) {
  std::vector<BatchItem> batch;
  for (std::uint32_t i = 0; i < tokens.size(); ++i) {
    batch.push_back({sequence, tokens[i], i, false});
  }
  std::string error;
  EXPECT_EQ(engine.decode(batch, error), DecodeOutcome::kDone) << error;
}

TEST(Prefix, ACopySaysTheSameAndSharesItsCells) {
  for (const auto* const architecture : {"llama", "mixtral", "qwen2", "qwen3", "qwen3moe"}) {
    const auto engine = load_well({.model_path = random_file({.architecture = architecture}),
                                   .context = 256,
                                   .sequences = 4});
    ASSERT_TRUE(engine->facts().shares_cells) << architecture;
    const auto tokens = some_tokens(150);
    hold(*engine, 0, tokens);
    // Four times 150 tokens would not fit.
    for (SequenceId to = 1; to < 4; ++to) {
      EXPECT_EQ(engine->copy_prefix(0, to, 140), 140U) << architecture;
    }
    std::vector<TokenId> expected;
    for (SequenceId sequence = 1; sequence < 4; ++sequence) {
      const auto said = greedy(*engine, sequence, 140, {500}, 10);
      if (sequence == 1) expected = said;
      EXPECT_EQ(said, expected) << architecture << " " << sequence;
    }
    // The original is as it was, and says the same where it is cut there.
    EXPECT_EQ(engine->keep_prefix(0, 140), 140U);
    EXPECT_EQ(greedy(*engine, 0, 140, {500}, 10), expected) << architecture;
    // A copy replaces what was there, also with less.
    EXPECT_EQ(engine->copy_prefix(0, 1, 10), 10U);
    EXPECT_EQ(engine->keep_prefix(1, 10), 10U);
  }
}

TEST(Prefix, CopiesOfWhatIsNotThereAreEmpty) {
  const auto engine = load_well({.model_path = random_file({}), .sequences = 2});
  hold(*engine, 1, some_tokens(5));
  EXPECT_EQ(engine->copy_prefix(0, 1, 3), 0U);  // nothing is held
  EXPECT_EQ(engine->keep_prefix(1, 5), 0U);     // and what was there is gone
  hold(*engine, 0, some_tokens(5));
  EXPECT_EQ(engine->copy_prefix(0, 1, 6), 0U);
  EXPECT_EQ(engine->copy_prefix(0, 1, 0), 0U);
  EXPECT_EQ(engine->copy_prefix(0, 0, 4), 4U);
  EXPECT_EQ(engine->copy_prefix(0, 1, 4), 4U);
}

// A partial copy of other memories would be wrong, or end the process.
TEST(Prefix, OtherMemoriesCopyNothing) {
  for (const auto* const architecture : {"gemma2", "gemma3", "mamba", "rwkv7", "jamba", "lfm2"}) {
    const auto engine =
        load_well({.model_path = random_file({.architecture = architecture}), .sequences = 2});
    EXPECT_FALSE(engine->facts().shares_cells) << architecture;
    hold(*engine, 0, some_tokens(20));
    EXPECT_EQ(engine->copy_prefix(0, 1, 10), 0U) << architecture;
    EXPECT_EQ(greedy(*engine, 1, 0, some_tokens(3), 3).size(), 3U) << architecture;
  }
}

TEST(Threads, CanBeChangedAtAnyTime) {
  const auto engine = load_well({.model_path = random_file({}), .threads = 2});
  EXPECT_EQ(engine->facts().threads, 2U);
  const auto expected = greedy(*engine, 0, 0, some_tokens(20), 10);
  for (const std::uint32_t threads : {1U, 2U, 0U, 100U}) {
    engine->set_threads(threads);
    engine->keep_prefix(0, 0);
    EXPECT_EQ(greedy(*engine, 0, 0, some_tokens(20), 10), expected);
  }
}

}  // namespace
}  // namespace berth::worker
