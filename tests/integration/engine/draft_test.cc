#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/integration/engine/loading.h"
#include "tests/models/draft_pair.h"

namespace berth::worker {
namespace {

using test_models::ModelOptions;
using testing::HasSubstr;

constexpr std::size_t kAll = 10'000;  // no limit of reading

// A model with random weights finds all tokens nearly as likely; with larger outputs it is as sure
// as a trained one, and says the same.
void write_sure_model(const ModelOptions& options, const std::string& path) {
  auto model = test_models::make_model(options);
  ASSERT_TRUE(model) << model.error().message;
  model->remove_tensor("output_norm.weight");
  model->add_tensor("output_norm.weight", test_models::TensorType::kF32, {options.embedding},
                    [](std::vector<float>& values, std::uint64_t /*row*/) {
                      std::fill(values.begin(), values.end(), 20.0F);
                    });
  ASSERT_TRUE(model->write(path));
}

// A gpt2 with the vocabulary of random_file(), trained for `context` tokens.
void write_position_table_model(std::uint32_t context, const std::string& path) {
  ModelOptions options;
  options.architecture = "gpt2";
  options.layers = 1;
  options.kv_heads = options.heads;
  options.context = context;
  auto model = test_models::make_model(options);
  ASSERT_TRUE(model) << model.error().message;
  for (const auto& name : model->tensor_names()) {
    if (name != "token_embd.weight") model->remove_tensor(name);
  }
  const auto add = [&](const std::string& name, std::vector<std::uint64_t> shape) {
    const bool norm = name.find("norm.weight") != std::string::npos;
    model->add_tensor(name, test_models::TensorType::kF32, std::move(shape),
                      [norm](std::vector<float>& values, std::uint64_t row) {
                        for (std::size_t i = 0; i < values.size(); ++i) {
                          values[i] = norm ? 20.0F : static_cast<float>((row * 7 + i) % 5) / 100;
                        }
                      });
  };
  const std::uint64_t width = options.embedding;
  const std::uint64_t inner = options.feed_forward;
  add("position_embd.weight", {width, context});
  for (const std::string name : {"output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"}) {
    add(name + ".weight", {width});
    add(name + ".bias", {width});
  }
  const auto add_matrix = [&](const std::string& name, std::uint64_t columns, std::uint64_t rows) {
    add("blk.0." + name + ".weight", {columns, rows});
    add("blk.0." + name + ".bias", {rows});
  };
  add_matrix("attn_qkv", width, 3 * width);
  add_matrix("attn_output", width, width);
  add_matrix("ffn_up", width, inner);
  add_matrix("ffn_down", inner, width);
  model->set_f32("gpt2.attention.layer_norm_epsilon", 1e-5F);
  ASSERT_TRUE(model->write(path));
}

// A model and a draft model for it.
EngineSettings pair_of_models() {
  EngineSettings settings;
  settings.model_path = scratch_file("target.gguf");
  settings.draft_path = scratch_file("draft.gguf");
  const auto pair = test_models::draft_pair({.layers = 4});
  EXPECT_TRUE(pair);
  write_sure_model(pair->target, settings.model_path);
  write_sure_model(pair->draft, settings.draft_path);
  return settings;
}

struct Speculation {
  std::vector<TokenId> tokens;
  std::size_t proposed = 0;
  std::size_t accepted = 0;
};

// Greedy decoding in which every draft is checked in one batch, and wrong tokens are taken back.
Speculation speculate(Engine& engine, SequenceId sequence, std::vector<TokenId> tokens,
                      std::size_t count) {
  SamplingSettings settings;
  settings.temperature = 0;
  const auto sampler = engine.make_sampler(settings);
  Speculation result;
  std::uint32_t position = 0;
  while (result.tokens.size() < count) {
    std::vector<TokenId> draft;
    engine.draft(sequence, tokens, {kAll, 8}, draft);
    result.proposed += draft.size();
    std::vector<BatchItem> batch;
    for (auto i = position; i < tokens.size(); ++i)
      batch.push_back({sequence, tokens[i], i, false});
    batch.back().wants_output = true;
    const auto first = batch.size() - 1;
    for (std::size_t i = 0; i < draft.size(); ++i) {
      batch.push_back({sequence, draft[i], static_cast<std::uint32_t>(tokens.size() + i), true});
    }
    std::string error;
    if (engine.decode(batch, error) != DecodeOutcome::kDone) {
      ADD_FAILURE() << error;
      return result;
    }
    for (std::size_t i = 0; i <= draft.size() && result.tokens.size() < count; ++i) {
      const auto token = engine.sample(**sampler, first + i);
      if (!token) {
        ADD_FAILURE() << token.error().message;
        return result;
      }
      result.tokens.push_back(token->token);
      tokens.push_back(token->token);
      if (i == draft.size() || token->token != draft[i]) break;
      ++result.accepted;
    }
    position = static_cast<std::uint32_t>(tokens.size() - 1);
    EXPECT_EQ(engine.keep_prefix(sequence, position), position);
  }
  return result;
}

TEST(Draft, LeavesTheGreedyTextAsItIs) {
  auto settings = pair_of_models();
  settings.sequences = 2;
  const auto engine = load_well(settings);
  EXPECT_EQ(engine->facts().draft_tokens, 8U);
  const auto prompt = some_tokens(30);
  const auto expected = greedy(*engine, 0, 0, prompt, 60);
  engine->keep_prefix(0, 0);
  const auto result = speculate(*engine, 0, prompt, 60);
  EXPECT_EQ(result.tokens, expected);
  EXPECT_GT(result.accepted, 10U);
  EXPECT_LT(result.accepted, result.proposed);  // the draft is also wrong at times
  // Another sequence with another text, and the first one again from the beginning.
  const auto other = some_tokens(40, 2);
  EXPECT_EQ(speculate(*engine, 1, other, 30).tokens.size(), 30U);
  engine->keep_prefix(0, 0);
  EXPECT_EQ(speculate(*engine, 0, prompt, 60).tokens, expected);
}

TEST(Draft, FollowsWhateverTheSequenceHolds) {
  const auto engine = load_well(pair_of_models());
  const auto propose = [&](const std::vector<TokenId>& tokens) {
    std::vector<TokenId> draft;
    engine->draft(0, tokens, {kAll, 8}, draft);
    return draft;
  };
  auto tokens = some_tokens(50);
  const auto first = propose(tokens);
  auto longer = tokens;
  longer.insert(longer.end(), {301, 302, 303});
  const auto second = propose(longer);
  EXPECT_FALSE(first.empty());
  EXPECT_NE(first, second);
  EXPECT_EQ(propose(tokens), first);  // cut again
  EXPECT_EQ(propose(longer), second);
  propose(some_tokens(20, 9));  // something else
  EXPECT_EQ(propose(tokens), first);
}

TEST(Draft, ReadsNoMoreThanItMayAndProposesOnceItHasCaughtUp) {
  const auto engine = load_well(pair_of_models());
  std::vector<TokenId> expected;
  auto step = engine->draft(0, some_tokens(300), {kAll, 8}, expected);
  EXPECT_EQ(step.read, 300U);
  EXPECT_TRUE(step.caught_up);
  EXPECT_FALSE(expected.empty());

  std::vector<TokenId> draft;
  engine->draft(0, some_tokens(20, 9), {kAll, 1}, draft);
  draft.clear();
  for (int call = 0; call < 3; ++call) {
    step = engine->draft(0, some_tokens(300), {80, 8}, draft);
    EXPECT_EQ(step.read, 80U);
    EXPECT_FALSE(step.caught_up);
    EXPECT_TRUE(draft.empty());
  }
  step = engine->draft(0, some_tokens(300), {0, 8}, draft);
  EXPECT_EQ(step.read, 0U);
  EXPECT_FALSE(step.caught_up);
  step = engine->draft(0, some_tokens(300), {80, 8}, draft);
  EXPECT_EQ(step.read, 60U);
  EXPECT_TRUE(step.caught_up);
  EXPECT_EQ(draft, expected);
}

TEST(Draft, S8_T81_WhatIsForgottenIsReadAgain) {
  const auto engine = load_well(pair_of_models());
  std::vector<TokenId> first;
  EXPECT_EQ(engine->draft(0, some_tokens(200), {kAll, 8}, first).read, 200U);
  std::vector<TokenId> draft;
  EXPECT_EQ(engine->draft(0, some_tokens(200), {kAll, 8}, draft).read, 1U);
  engine->forget_draft(0);
  engine->forget_draft(77);
  draft.clear();
  EXPECT_EQ(engine->draft(0, some_tokens(200), {kAll, 8}, draft).read, 200U);
  EXPECT_EQ(draft, first);
}

TEST(Draft, ProposesNoMoreThanAskedForAndFits) {
  auto settings = pair_of_models();
  settings.context = 64;
  settings.draft_tokens = 4;
  const auto engine = load_well(settings);
  EXPECT_EQ(engine->facts().draft_tokens, 4U);
  std::vector<TokenId> draft;
  for (std::size_t length = 1; length < 64; ++length) {
    for (const std::size_t most : {0U, 1U, 3U, 100U}) {
      draft.clear();
      engine->draft(0, some_tokens(length), {kAll, most}, draft);
      EXPECT_LE(draft.size(), std::min<std::size_t>({most, 4, 64 - length}));
    }
  }
  draft.clear();
  engine->draft(0, {}, {kAll, 4}, draft);
  engine->draft(7, some_tokens(3), {kAll, 4}, draft);
  engine->draft(-1, some_tokens(3), {kAll, 4}, draft);
  engine->draft(0, std::vector<TokenId>{1, -5}, {kAll, 4}, draft);
  engine->draft(0, some_tokens(64), {kAll, 4}, draft);
  EXPECT_TRUE(draft.empty());
}

// The cells of sequences that the model forgot long ago are taken when they are needed.
TEST(Draft, StaleSequencesMakeRoom) {
  auto settings = pair_of_models();
  settings.context = 256;
  settings.sequences = 3;
  const auto engine = load_well(settings);
  std::vector<TokenId> expected;
  engine->draft(0, some_tokens(200), {kAll, 8}, expected);
  EXPECT_FALSE(expected.empty());
  for (SequenceId sequence = 1; sequence < 3; ++sequence) {
    std::vector<TokenId> draft;
    engine->draft(sequence, some_tokens(200), {kAll, 8}, draft);
    EXPECT_EQ(draft, expected) << sequence;
  }
}

// Only as many as are needed, and those first that were not used for long.
TEST(Draft, TheLongestUnusedSequenceMakesRoomAndTheOthersStay) {
  auto settings = pair_of_models();
  settings.context = 256;
  settings.sequences = 3;
  const auto engine = load_well(settings);
  const auto read = [&](SequenceId sequence, std::size_t count) {
    std::vector<TokenId> draft;
    return engine->draft(sequence, some_tokens(count), {kAll, 1}, draft).read;
  };
  EXPECT_EQ(read(0, 100), 100U);
  EXPECT_EQ(read(1, 100), 100U);
  EXPECT_EQ(read(0, 100), 1U);
  EXPECT_EQ(read(2, 100), 100U);
  EXPECT_EQ(read(0, 100), 1U);
  EXPECT_EQ(read(2, 100), 1U);
  EXPECT_EQ(read(1, 100), 100U) << "it was forgotten";
}

TEST(Draft, AnAbortedDraftTakesNothingFromOthers) {
  auto settings = pair_of_models();
  settings.sequences = 2;
  const auto engine = load_well(settings);
  bool give_up = false;
  engine->set_abort_check([&give_up] { return give_up; });
  std::vector<TokenId> draft;
  EXPECT_EQ(engine->draft(0, some_tokens(100), {kAll, 1}, draft).read, 100U);
  EXPECT_EQ(engine->draft(1, some_tokens(100), {60, 1}, draft).read, 60U);
  give_up = true;
  const auto aborted = engine->draft(1, some_tokens(100), {kAll, 1}, draft);
  EXPECT_EQ(aborted.read, 0U);
  EXPECT_FALSE(aborted.caught_up);
  give_up = false;
  EXPECT_EQ(engine->draft(0, some_tokens(100), {kAll, 1}, draft).read, 1U);
  EXPECT_EQ(engine->draft(1, some_tokens(100), {kAll, 1}, draft).read, 40U) << "nor of its own";
}

TEST(Draft, ProposesNothingPastTheEndOfItsTableOfPositions) {
  EngineSettings settings;
  settings.model_path = random_file({});
  settings.draft_path = scratch_file("positions.gguf");
  write_position_table_model(64, settings.draft_path);
  settings.context = 512;
  const auto engine = load_well(settings);
  EXPECT_EQ(engine->facts().window, 512U);
  std::vector<TokenId> draft;
  for (const std::size_t length : {60U, 63U, 64U, 65U, 100U, 400U}) {
    draft.clear();
    const auto step = engine->draft(0, some_tokens(length), {kAll, 8}, draft);
    EXPECT_TRUE(step.caught_up);
    EXPECT_LE(draft.size(), 64 - std::min<std::size_t>(64, length)) << length;
  }
}

TEST(Draft, AbortedDraftsProposeNothingAndHarmNothing) {
  const auto engine = load_well(pair_of_models());
  bool give_up = false;
  engine->set_abort_check([&give_up] { return give_up; });
  std::vector<TokenId> expected;
  engine->draft(0, some_tokens(100), {kAll, 8}, expected);
  EXPECT_FALSE(expected.empty());
  give_up = true;
  std::vector<TokenId> draft;
  engine->draft(0, some_tokens(300, 3), {kAll, 8}, draft);
  EXPECT_TRUE(draft.empty());
  give_up = false;
  engine->draft(0, some_tokens(100), {kAll, 8}, draft);
  EXPECT_EQ(draft, expected);
}

TEST(Draft, T53_ItsMemoryCounts) {
  auto settings = pair_of_models();
  const auto both = load_well(settings)->facts().memory;
  settings.draft_path.clear();
  const auto alone = load_well(settings);
  EXPECT_EQ(alone->facts().draft_tokens, 0U);
  ASSERT_EQ(both.size(), 1U);
  EXPECT_GT(both[0].weights_bytes, alone->facts().memory[0].weights_bytes);
  EXPECT_GT(both[0].kv_bytes, alone->facts().memory[0].kv_bytes);
  EXPECT_GT(both[0].working_bytes, alone->facts().memory[0].working_bytes);
  std::vector<TokenId> draft;
  alone->draft(0, some_tokens(10), {kAll, 8}, draft);
  EXPECT_TRUE(draft.empty());
}

TEST(Draft, L15_WhatDoesNotFitIsRefusedWithTheDifference) {
  const auto with = [](const std::string& model, const ModelOptions& draft) {
    const auto failure = failure_of({.model_path = model, .draft_path = random_file(draft)});
    EXPECT_EQ(failure.failure_class, "permanent");
    EXPECT_THAT(failure.reason, HasSubstr("draft"));
    EXPECT_THAT(failure.reason, testing::Not(HasSubstr("/tmp")));
    return failure.reason;
  };
  const auto model = random_file({});
  EXPECT_THAT(with(model, {.vocabulary = 2048}), HasSubstr("2048 tokens instead of 1024"));
  EXPECT_THAT(with(model, {.tokenizer = test_models::Tokenizer::kSpm}), HasSubstr("another type"));
  EXPECT_THAT(with(model, {.architecture = "mamba"}), HasSubstr("cannot take back"));
  EXPECT_THAT(with(model, {.architecture = "bert"}), HasSubstr("only embeds"));
  EXPECT_THAT(with(model, {.architecture = "t5"}), HasSubstr("encoder and a decoder"));
  for (const auto* const architecture : {"mamba", "rwkv7", "jamba", "lfm2"}) {
    EXPECT_THAT(with(random_file({.architecture = architecture}), {}),
                HasSubstr("cannot take back a wrong guess"))
        << architecture;
  }
  EXPECT_THAT(with(random_file({.architecture = "bert"}), {}), HasSubstr("no use for a draft"));
  const auto missing = failure_of({.model_path = model, .draft_path = "/tmp/none.gguf"});
  EXPECT_THAT(missing.reason, HasSubstr("draft model: "));
  EXPECT_THAT(missing.reason, HasSubstr("No such file"));
}

}  // namespace
}  // namespace berth::worker
