#include "supervisor/core/memory/cost_model.h"

#include <gtest/gtest.h>

namespace berth::core {
namespace {

constexpr std::uint64_t kMiB = 1ULL << 20;

// 4 layers of 1 MiB, 8 heads with 2 of keys and values, 128 wide.
ModelShape small_shape() {
  ModelShape shape;
  shape.architecture = "llama";
  shape.embedding = 1024;
  shape.vocabulary = 32'000;
  shape.input_weights = 3 * kMiB;
  shape.output_weights = 5 * kMiB;
  LayerShape layer;
  layer.weights = kMiB;
  layer.heads = 8;
  layer.keys = 256;
  layer.values = 256;
  layer.feed_forward = 2048;
  shape.layers.assign(4, layer);
  return shape;
}

std::uint64_t host_kv(const ModelShape& shape, const ServeShape& serve) {
  return charge_of(model_cost(shape, serve), {}).kv.bytes[kHostDomain];
}

TEST(CostModel, M4_WeightsAreThoseOfTheTensorsNotOfTheFile) {
  auto shape = small_shape();
  shape.file_bytes = 1000 * kMiB;
  const auto charge = charge_of(model_cost(shape, {}), {});
  EXPECT_EQ(charge.weights.bytes, DomainBytes::in(kHostDomain, 12 * kMiB));
  EXPECT_EQ(charge.weights.basis, Basis::kEstimated);
}

TEST(CostModel, M4_OnePoolOfCellsHoweverManySequences) {
  const auto shape = small_shape();
  ServeShape serve{.window = 4096};
  const std::uint64_t one = host_kv(shape, serve);
  EXPECT_EQ(one, 4096ULL * 4 * (256 + 256) * 2);
  serve.sequences = 8;
  EXPECT_EQ(host_kv(shape, serve), one);
  serve.window = 8192;
  EXPECT_EQ(host_kv(shape, serve), 2 * one);
}

TEST(CostModel, M4_ThePoolIsRoundedUpAsLibllamaDoes) {
  const auto shape = small_shape();
  EXPECT_EQ(host_kv(shape, {.window = 1000}), host_kv(shape, {.window = 1024}));
  EXPECT_GT(host_kv(shape, {.window = 1025}), host_kv(shape, {.window = 1024}));
}

TEST(CostModel, M4_KvTypeDecidesTheBytesOfACell) {
  const auto shape = small_shape();
  const std::uint64_t f16 = host_kv(shape, {});
  EXPECT_EQ(host_kv(shape, {.kv_type = *kv_type_from_name("f32")}), 2 * f16);
  EXPECT_EQ(host_kv(shape, {.kv_type = *kv_type_from_name("q8_0")}), f16 * 34 / 64);
  EXPECT_EQ(host_kv(shape, {.kv_type = *kv_type_from_name("q4_0")}), f16 * 18 / 64);
  EXPECT_FALSE(kv_type_from_name("q6_K").has_value());
}

TEST(CostModel, M4_LayersWithASlidingWindowStopGrowing) {
  auto shape = small_shape();
  shape.sliding_window = 1024;
  shape.layers[0].windowed = shape.layers[2].windowed = true;
  const std::uint64_t cell = 512ULL * 2;
  // The window and one micro-batch.
  EXPECT_EQ(host_kv(shape, {.window = 32'768}), cell * (2 * 32'768 + 2 * (1024 + 512)));
  // Each sequence has a window of its own.
  EXPECT_EQ(host_kv(shape, {.window = 32'768, .sequences = 4}),
            cell * (2 * 32'768 + 2 * (4096 + 512)));
  EXPECT_EQ(host_kv(shape, {.window = 1024}), cell * 4 * 1024);
}

TEST(CostModel, M4_StatesAreForEachSequenceAndNotForEachToken) {
  auto shape = small_shape();
  for (LayerShape& layer : shape.layers) {
    layer.keys = layer.values = 0;
    layer.state_bytes = 1000;
  }
  EXPECT_EQ(host_kv(shape, {.window = 4096}), 4000U);
  EXPECT_EQ(host_kv(shape, {.window = 65'536, .sequences = 3}), 12'000U);
}

TEST(CostModel, M4_ATiedOutputIsKeptOnceInTheHostAndTwiceWithADevice) {
  auto shape = small_shape();
  shape.tied_output = shape.output_weights = 3 * kMiB;
  const auto cost = model_cost(shape, {});
  EXPECT_EQ(charge_of(cost, {}).weights.bytes, DomainBytes::in(0, 7 * kMiB));
  const auto split = charge_of(cost, {{{1, 5}}}).weights.bytes;
  EXPECT_EQ(split[0], 3 * kMiB);
  EXPECT_EQ(split[1], 7 * kMiB);
  shape.tied_repacks = true;
  EXPECT_EQ(charge_of(model_cost(shape, {}), {}).weights.bytes, DomainBytes::in(0, 10 * kMiB));
  EXPECT_EQ(charge_of(model_cost(shape, {.repacks = false}), {}).weights.bytes,
            DomainBytes::in(0, 7 * kMiB));
}

TEST(CostModel, M4_TheLastLayersAreOnDevicesInTheOrderOfTheShares) {
  auto shape = small_shape();
  for (std::size_t i = 0; i < 4; ++i) shape.layers[i].weights = (i + 1) * kMiB;
  const auto cost = model_cost(shape, {.device_context = 7});
  const auto charge = charge_of(cost, {{{2, 1}, {1, 3}}});
  EXPECT_EQ(charge.weights.bytes[0], (3 + 1) * kMiB);  // the input and the first layer
  EXPECT_EQ(charge.weights.bytes[2], 2 * kMiB);
  EXPECT_EQ(charge.weights.bytes[1], (3 + 4 + 5) * kMiB);
  EXPECT_EQ(charge.overhead.bytes[2], 7U);
  EXPECT_EQ(charge.overhead.bytes[3], 0U);
  EXPECT_GT(charge.working.bytes[1], 0U);
  EXPECT_GT(charge.error[0], 0U);
  // More than there are: all, and the devices behind are not used.
  EXPECT_EQ(charge_of(cost, {{{1, 99}, {2, 4}}}).weights.bytes[2], 0U);
}

TEST(CostModel, M4_ADeviceBorrowsTheMatricesOfLayersInTheHost) {
  auto shape = small_shape();
  const auto working = [&](std::uint32_t layers) {
    return charge_of(model_cost(shape, {}), {{{1, layers}, {2, 1}}}).working.bytes;
  };
  const auto before = working(2);
  shape.largest_matrix = kMiB;
  EXPECT_EQ(working(2)[1], before[1] + kMiB);
  EXPECT_EQ(working(2)[2], before[2]);
  const auto whole = working(4);
  shape.largest_matrix = 0;
  EXPECT_EQ(whole, working(4)) << "none is in the host";
}

TEST(CostModel, M4_SeveralDevicesThatHaveAllLayersKeepInputsOfFourBatches) {
  const ModelCost cost = model_cost(small_shape(), {});
  const std::uint64_t more = cost.parts.front().pipelined_working;
  ASSERT_GT(more, 0U);
  const auto working = [&](const Placement& placement) {
    return charge_of(cost, placement).working.bytes;
  };
  const DomainBytes one = working({{{1, 5}}});
  const DomainBytes two = working({{{1, 4}, {2, 1}}});
  EXPECT_EQ(two[0], one[0] + more);
  EXPECT_EQ(two[1], one[1] + more);
  EXPECT_EQ(two[2], one[1] + more);
  EXPECT_EQ(working({{{1, 3}, {2, 1}}})[2], one[1]) << "a layer is in the host";
}

TEST(CostModel, M4_AnyPlacementSumsToTheSameCells) {
  const auto cost = model_cost(small_shape(), {});
  const auto whole = charge_of(cost, {}).kv.bytes[0];
  for (std::uint32_t layers = 0; layers <= 5; ++layers) {
    const auto kv = charge_of(cost, {{{1, layers}}}).kv.bytes;
    EXPECT_EQ(kv[0] + kv[1], whole);
  }
}

TEST(CostModel, M4_ADraftModelAddsItsOwnCellsAndGoesWhereTheModelGoes) {
  const auto shape = small_shape();
  auto draft = small_shape();
  draft.layers.resize(1);
  const auto alone = model_cost(shape, {});
  const auto both = model_cost(shape, {}, &draft);
  ASSERT_EQ(both.parts.size(), 2U);
  EXPECT_EQ(charge_of(both, {}).kv.bytes[0], charge_of(alone, {}).kv.bytes[0] * 5 / 4);
  const auto split = charge_of(both, {{{1, 2}}});
  EXPECT_EQ(split.weights.bytes[1], 6 * kMiB + 6 * kMiB);
  EXPECT_GT(split.working.bytes[1], charge_of(alone, {{{1, 2}}}).working.bytes[1]);
}

TEST(CostModel, M4_AnAdapterAddsWeightsToTheLayersItTouches) {
  ModelShape adapter;
  adapter.layers.resize(3);
  adapter.layers[2].weights = 10;
  const auto cost = model_cost(small_shape(), {}, nullptr, {{adapter}});
  EXPECT_EQ(cost.parts[0].layers[2].weights, kMiB + 10);
}

TEST(CostModel, M4_WhatIsGuessedHasALargerError) {
  auto shape = small_shape();
  const auto known = model_cost(shape, {});
  shape.guessed = true;
  EXPECT_GT(model_cost(shape, {}).error_percent, known.error_percent);
}

TEST(CostModel, M4_SumsOfImpossibleNumbersStayAtTheGreatest) {
  auto shape = small_shape();
  for (LayerShape& layer : shape.layers) {
    layer.weights = UINT64_MAX / 2;
    layer.keys = layer.values = 1U << 30;
    layer.state_bytes = UINT64_MAX;
    layer.feed_forward = UINT32_MAX;
    layer.heads = UINT32_MAX;
  }
  shape.vocabulary = UINT64_MAX;
  shape.sliding_window = UINT32_MAX;
  const ServeShape serve{.window = UINT32_MAX,
                         .sequences = UINT32_MAX,
                         .batch = UINT32_MAX,
                         .flash_attention = FlashAttention::kOff};
  const auto charge = charge_of(model_cost(shape, serve, &shape, {{shape}}), {{{1, 3}}});
  EXPECT_EQ(charge.total()[0], UINT64_MAX);
  EXPECT_EQ(charge.total()[1], UINT64_MAX);
}

}  // namespace
}  // namespace berth::core
