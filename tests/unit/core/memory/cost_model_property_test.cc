#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "supervisor/core/memory/cost_model.h"

namespace berth::core {
namespace {

ModelShape any_shape() {
  const auto up_to = [](std::uint32_t most) {
    return *rc::gen::inRange<std::uint32_t>(0, most + 1);
  };
  ModelShape shape;
  shape.embedding = up_to(16'384);
  shape.vocabulary = up_to(300'000);
  shape.input_weights = up_to(UINT32_MAX - 1);
  shape.output_weights = up_to(UINT32_MAX - 1);
  shape.tied_output = up_to(1) * shape.output_weights;
  shape.sliding_window = up_to(8192);
  shape.experts_used = up_to(8);
  shape.state_width = up_to(65'536);
  shape.encoder = up_to(9) == 0;
  shape.layers.resize(1 + up_to(7));
  for (LayerShape& layer : shape.layers) {
    layer.weights = up_to(UINT32_MAX - 1);
    layer.heads = up_to(128);
    layer.keys = up_to(1) * 32 * up_to(256);
    layer.values = layer.keys;
    layer.state_bytes = up_to(1) * up_to(1U << 24U);
    layer.feed_forward = up_to(65'536);
    layer.gated = up_to(1) == 1;
    layer.windowed = up_to(1) == 1;
  }
  return shape;
}

ServeShape any_serving() {
  ServeShape serve;
  serve.window = *rc::gen::inRange<std::uint32_t>(16, 1U << 20U);
  serve.sequences = *rc::gen::inRange<std::uint32_t>(1, 64);
  serve.batch = *rc::gen::inRange<std::uint32_t>(32, 4096);
  serve.kv_type = *rc::gen::element<std::uint32_t>(0, 1, 2, 8);
  serve.flash_attention = *rc::gen::element(FlashAttention::kAuto, FlashAttention::kOff);
  serve.embeds = *rc::gen::arbitrary<bool>();
  return serve;
}

Placement any_placement() {
  Placement placement;
  const int shares = *rc::gen::inRange(0, 4);
  for (int i = 0; i < shares; ++i) {
    placement.shares.push_back({.device = static_cast<DomainIndex>(1 + i),
                                .layers = *rc::gen::inRange<std::uint32_t>(0, 12)});
  }
  return placement;
}

// What the search for a window needs (M6).
RC_GTEST_PROP(CostModelProperty, M6_ALargerWindowNeverCostsLess, ()) {
  const auto shape = any_shape();
  auto serve = any_serving();
  const auto placement = any_placement();
  const auto small = charge_of(model_cost(shape, serve), placement).total();
  serve.window += *rc::gen::inRange<std::uint32_t>(0, 100'000);
  RC_ASSERT(small.fits(charge_of(model_cost(shape, serve), placement).total()));
}

RC_GTEST_PROP(CostModelProperty, M14_FewerSequencesNeverCostMore, ()) {
  const auto shape = any_shape();
  auto serve = any_serving();
  // An embedding's micro-batch is rounded up to equal parts, by less than the sequences.
  serve.embeds = false;
  RC_PRE(!shape.encoder);
  const auto placement = any_placement();
  const auto few = charge_of(model_cost(shape, serve), placement).total();
  serve.sequences += *rc::gen::inRange<std::uint32_t>(0, 64);
  RC_ASSERT(few.fits(charge_of(model_cost(shape, serve), placement).total()));
}

RC_GTEST_PROP(CostModelProperty, M4_WeightsAndCellsAreTheSameWhereverTheyAre, ()) {
  auto shape = any_shape();
  shape.tied_output = 0;
  const auto cost = model_cost(shape, any_serving());
  const auto sum = [](const DomainBytes& bytes) {
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < kMaxDomains; ++i) all += bytes[static_cast<DomainIndex>(i)];
    return all;
  };
  const auto here = charge_of(cost, {});
  const auto there = charge_of(cost, any_placement());
  RC_ASSERT(sum(here.weights.bytes) == sum(there.weights.bytes));
  RC_ASSERT(sum(here.kv.bytes) == sum(there.kv.bytes));
}

}  // namespace
}  // namespace berth::core
