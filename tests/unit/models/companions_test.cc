// What goes with a model: drafts, adapters, projectors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/gguf/gguf.h"
#include "tests/models/adapter.h"
#include "tests/models/broken_models.h"
#include "tests/models/draft_pair.h"
#include "tests/models/projector.h"
#include "tests/unit/common/temp_dir.h"
#include "tests/unit/models/parsed.h"

namespace berth::test_models {
namespace {

using testing::HasSubstr;

// The stored bytes of a tensor.
std::string data_of(const std::string& file, std::string_view name) {
  const auto header = parsed(file);
  const auto* const tensor = find_tensor(header, name);
  if (tensor == nullptr) return "";
  return file.substr(header.data_offset + tensor->offset, tensor->bytes);
}

TEST(DraftPairs, TheDraftIsTheBeginningOfTheTarget) {
  const auto pair = draft_pair({.layers = 4});
  ASSERT_TRUE(pair.has_value());
  EXPECT_EQ(pair->draft.layers, 1U);
  EXPECT_EQ(pair->draft.vocabulary, pair->target.vocabulary);
  const std::string target = make_model(pair->target)->bytes();
  const std::string draft = make_model(pair->draft)->bytes();
  EXPECT_LT(draft.size(), target.size());
  for (const char* const name :
       {"token_embd.weight", "output.weight", "blk.0.attn_q.weight", "blk.0.ffn_down.weight"}) {
    EXPECT_FALSE(data_of(target, name).empty()) << name;
    EXPECT_EQ(data_of(target, name), data_of(draft, name)) << name;
  }
}

TEST(DraftPairs, OnlyLaterLayersOfTheTargetAreQuiet) {
  const auto pair = draft_pair({.layers = 3, .later_layers = 0.25F, .early_layers = 2});
  ASSERT_TRUE(pair.has_value());
  ModelOptions loud = pair->target;
  loud.later_layers = 1.0F;
  const std::string target = make_model(pair->target)->bytes();
  const std::string other = make_model(loud)->bytes();
  EXPECT_EQ(data_of(target, "blk.1.ffn_down.weight"), data_of(other, "blk.1.ffn_down.weight"));
  EXPECT_NE(data_of(target, "blk.2.ffn_down.weight"), data_of(other, "blk.2.ffn_down.weight"));
  EXPECT_EQ(data_of(target, "blk.2.ffn_up.weight"), data_of(other, "blk.2.ffn_up.weight"));
}

TEST(DraftPairs, ATargetHasMoreLayersThanItsDraft) {
  EXPECT_THAT(draft_pair({.layers = 1}).error().message, HasSubstr("more layers"));
  EXPECT_FALSE(draft_pair({.early_layers = 0}).has_value());
  test::TempDir dir;
  EXPECT_TRUE(write_draft_pair({}, dir.file("x.gguf"), dir.file("y.gguf")).has_value());
  EXPECT_TRUE(gguf::read_model(dir.file("y.gguf")).has_value());
  EXPECT_FALSE(write_draft_pair({}, dir.file("x.gguf"), dir.file("absent/y")).has_value());
}

TEST(Adapters, AreReadAsAdaptersOfTheirModel) {
  test::TempDir dir;
  const auto adapter = make_adapter({});
  ASSERT_TRUE(adapter.has_value()) << adapter.error().message;
  ASSERT_TRUE(adapter->write(dir.file("a.gguf")).has_value());
  const auto summary = gguf::read_model(dir.file("a.gguf"));
  ASSERT_TRUE(summary.has_value()) << summary.error().message;
  EXPECT_TRUE(summary->is_adapter);
  EXPECT_EQ(summary->architecture, "llama");
  const auto header = parsed(adapter->bytes());
  EXPECT_EQ(header.text("adapter.type"), "lora");
  EXPECT_EQ(header.number("adapter.lora.alpha"), 8.0);
  const auto* const a = find_tensor(header, "blk.1.attn_v.weight.lora_a");
  const auto* const b = find_tensor(header, "blk.1.attn_v.weight.lora_b");
  ASSERT_TRUE(a != nullptr && b != nullptr);
  EXPECT_EQ(a->shape[0], 64U);
  EXPECT_EQ(a->shape[1], 4U);
  EXPECT_EQ(b->shape[0], 4U);
  EXPECT_EQ(b->shape[1], 32U);  // two KV heads of 16
}

TEST(Adapters, TheSameSeedGivesTheSameBytes) {
  const std::string first = make_adapter({})->bytes();
  EXPECT_EQ(make_adapter({})->bytes(), first);
  EXPECT_NE(make_adapter({}, {.seed = 2})->bytes(), first);
}

TEST(Adapters, AreMadeForAttentionOnly) {
  for (const char* const name : {"qwen3", "gemma2", "mixtral"}) {
    EXPECT_TRUE(make_adapter({.architecture = name}).has_value()) << name;
  }
  for (const char* const name : {"mamba", "jamba", "bert", "t5", "kestrel"}) {
    EXPECT_FALSE(make_adapter({.architecture = name}).has_value()) << name;
  }
  EXPECT_FALSE(make_adapter({}, {.rank = 0}).has_value());
  EXPECT_FALSE(make_adapter({}, {.alpha = 0}).has_value());
}

TEST(Adapters, FaultsLeaveAReadableFileThatDiffers) {
  const std::string sound = make_adapter({})->bytes();
  for (const AdapterFaultInfo& info : all_adapter_faults()) {
    EXPECT_EQ(adapter_fault_from_name(info.name), info.fault);
    const auto adapter = make_adapter({}, {}, info.fault);
    ASSERT_TRUE(adapter.has_value()) << info.name;
    EXPECT_NE(adapter->bytes(), sound) << info.name;
    EXPECT_FALSE(parsed(adapter->bytes()).tensors.empty()) << info.name;
  }
  EXPECT_FALSE(adapter_fault_from_name("tired").has_value());
}

TEST(Projectors, AreReadAsProjectors) {
  test::TempDir dir;
  ASSERT_TRUE(make_projector().write(dir.file("p.gguf")).has_value());
  const auto summary = gguf::read_model(dir.file("p.gguf"));
  ASSERT_TRUE(summary.has_value()) << summary.error().message;
  EXPECT_TRUE(summary->is_projector);
  EXPECT_FALSE(summary->is_adapter);
  EXPECT_FALSE(summary->embeds);
}

TEST(Damage, AnyFileCanHaveTheFaultsOfFiles) {
  test::TempDir dir;
  for (const FaultInfo& info : all_faults()) {
    const auto bytes = damaged_bytes(make_projector(), info.fault);
    const bool of_models = !info.header_shows || info.fault == Fault::kMissingShard;
    ASSERT_EQ(bytes.has_value(), !of_models) << info.name;
    if (!bytes) continue;
    ASSERT_TRUE(write_file(dir.file("p.gguf"), *bytes).has_value());
    const auto summary = gguf::read_model(dir.file("p.gguf"));
    ASSERT_FALSE(summary.has_value()) << info.name;
    EXPECT_THAT(summary.error().message, HasSubstr(std::string(info.reader_says)));
  }
}

}  // namespace
}  // namespace berth::test_models
