#include "tests/models/adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/engine/loading.h"
#include "tests/models/projector.h"

namespace berth::worker {
namespace {

using test_models::AdapterOptions;
using test_models::ModelOptions;
using testing::HasSubstr;

std::string adapter_file(const ModelOptions& model, const AdapterOptions& options = {}) {
  auto path = scratch_file("adapter.gguf");
  const auto adapter = test_models::make_adapter(model, options);
  EXPECT_TRUE(adapter && adapter->write(path));
  return path;
}

std::vector<TokenId> says(const std::string& model,
                          const std::vector<std::pair<std::string, float>>& adapters) {
  const auto engine = load_well({.model_path = model, .adapters = adapters});
  return greedy(*engine, 0, 0, some_tokens(20), 30);
}

TEST(Adapter, ChangesWhatIsSaidByItsScale) {
  const ModelOptions options;
  const auto model = random_file(options);
  const auto adapter = adapter_file(options);
  const auto plain = says(model, {});
  const auto adapted = says(model, {{adapter, 1.0F}});
  EXPECT_NE(adapted, plain);
  EXPECT_EQ(says(model, {{adapter, 1.0F}}), adapted);
  EXPECT_EQ(says(model, {{adapter, 0.0F}}), plain);
  EXPECT_NE(says(model, {{adapter, -2.0F}}), adapted);
  // Two of them add up.
  const auto other = adapter_file(options, {.seed = 2});
  const auto both = says(model, {{adapter, 1.0F}, {other, 1.0F}});
  EXPECT_NE(both, adapted);
  EXPECT_EQ(says(model, {{other, 1.0F}, {adapter, 1.0F}}), both);
}

TEST(Adapter, ItsMemoryCountsAsWeights) {
  const ModelOptions options;
  const auto model = random_file(options);
  const auto plain = load_well({.model_path = model});
  const auto adapted =
      load_well({.model_path = model, .adapters = {{adapter_file(options, {.rank = 16}), 1.0F}}});
  EXPECT_GT(adapted->facts().memory.at(0).weights_bytes, plain->facts().memory.at(0).weights_bytes);
}

TEST(Adapter, L15_WhatCannotBeUsedIsRefusedByName) {
  const ModelOptions options;
  const auto model = random_file(options);
  for (const auto& info : test_models::all_adapter_faults()) {
    const auto path = scratch_file(std::string(info.name) + ".gguf");
    const auto adapter = test_models::make_adapter(options, {}, info.fault);
    ASSERT_TRUE(adapter && adapter->write(path));
    const auto failure = failure_of({.model_path = model, .adapters = {{path, 1.0F}}});
    EXPECT_EQ(failure.failure_class, "permanent") << info.name;
    EXPECT_THAT(failure.reason, HasSubstr("adapter ")) << info.name;
    EXPECT_THAT(failure.reason, HasSubstr(info.name)) << info.name;
    EXPECT_THAT(failure.reason, testing::Not(HasSubstr("/tmp"))) << info.name;
    EXPECT_THAT(failure.reason, testing::Not(HasSubstr("did not say"))) << info.name;
  }
  const auto missing = failure_of({.model_path = model, .adapters = {{"/tmp/none.gguf", 1.0F}}});
  EXPECT_EQ(missing.failure_class, "permanent");
  EXPECT_THAT(missing.reason, HasSubstr("adapter none.gguf: "));
  // A model is no adapter, and an adapter no model.
  EXPECT_EQ(failure_of({.model_path = model, .adapters = {{model, 1.0F}}}).failure_class,
            "permanent");
  EXPECT_THAT(failure_of({.model_path = adapter_file(options)}).reason, HasSubstr("an adapter"));
}

// An adapter that works only behind certain tokens.
TEST(Adapter, L15_InvokedAdaptersAreRefused) {
  const ModelOptions options;
  const auto path = scratch_file("invoked.gguf");
  auto adapter = test_models::make_adapter(options);
  ASSERT_TRUE(adapter);
  const std::uint32_t type = 4;  // u32
  const std::uint64_t count = 2;
  const std::uint32_t tokens[] = {301, 302};
  std::string bytes(reinterpret_cast<const char*>(&type), sizeof type);
  bytes.append(reinterpret_cast<const char*>(&count), sizeof count);
  bytes.append(reinterpret_cast<const char*>(tokens), sizeof tokens);
  adapter->set_raw("adapter.alora.invocation_tokens", 9, bytes);
  ASSERT_TRUE(adapter->write(path));
  const auto failure = failure_of({.model_path = random_file(options), .adapters = {{path, 1.0F}}});
  EXPECT_EQ(failure.failure_class, "permanent");
  EXPECT_THAT(failure.reason, HasSubstr("invoked.gguf"));
  EXPECT_THAT(failure.reason, HasSubstr("aLoRA"));
}

TEST(Projector, L15_IsNoModelOfItsOwn) {
  const auto path = scratch_file("mmproj.gguf");
  ASSERT_TRUE(test_models::make_projector().write(path));
  const auto failure = failure_of({.model_path = path});
  EXPECT_EQ(failure.failure_class, "permanent");
  EXPECT_THAT(failure.reason, HasSubstr("projector"));
}

}  // namespace
}  // namespace berth::worker
