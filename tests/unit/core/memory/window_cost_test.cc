#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "supervisor/core/memory/cost_model.h"
#include "supervisor/core/memory/placement_options.h"
#include "supervisor/core/memory/window.h"
#include "tests/unit/core/memory/plans.h"

// The served window with the cost of a model, as it is in production.
namespace berth::core {
namespace {

constexpr std::uint64_t kMiB = 1ULL << 20;
constexpr std::uint64_t kGiB = 1ULL << 30;

// Of some 8 billion parameters in 4 bits; 128 KiB for each cell.
ModelShape shape_of_8b() {
  ModelShape shape;
  shape.architecture = "llama";
  shape.embedding = 4096;
  shape.vocabulary = 128'000;
  shape.input_weights = 280 * kMiB;
  shape.output_weights = 410 * kMiB;
  LayerShape layer;
  layer.weights = 118 * kMiB;
  layer.heads = 32;
  layer.keys = 1024;
  layer.values = 1024;
  layer.feed_forward = 14'336;
  shape.layers.assign(32, layer);
  return shape;
}

struct Machine {
  Domains domains;
  Targets targets;

  [[nodiscard]] bool fits(std::uint32_t window, std::uint32_t sequences, double share) const {
    const ServeShape serve{.window = window, .sequences = sequences};
    return fits_somewhere(model_cost(shape_of_8b(), serve), targets, whole_budget(domains, share));
  }
  [[nodiscard]] ServedWindow window(bool company) const {
    return served_window(
        {.declared = 131'072, .company = company},
        [this](std::uint32_t tokens, double share) { return fits(tokens, 1, share); });
  }
};

Machine with_device(std::uint64_t bytes) {
  Machine machine{.domains = testing::machine(64 * kGiB, {bytes}).domains, .targets = {{1}}};
  for (Domain& domain : machine.domains) domain.total = 100 * kGiB;
  return machine;
}

TEST(WindowCost, M6_ASmallModelDoesNotCostTheWholeMachine) {
  EXPECT_EQ(with_device(24 * kGiB).window(false), (ServedWindow{32'768, WindowBound::kAutoMax}));
  const ServedWindow shared = with_device(16 * kGiB).window(true);
  EXPECT_EQ(shared.bound, WindowBound::kShare);
  EXPECT_TRUE(with_device(16 * kGiB).fits(shared.tokens, 1, 0.5));
  EXPECT_FALSE(with_device(16 * kGiB).fits(shared.tokens + 256, 1, 0.5));
  EXPECT_EQ(with_device(7 * kGiB).window(false).bound, WindowBound::kBudget);
  EXPECT_EQ(with_device(4 * kGiB).window(false), (ServedWindow{4096, WindowBound::kFloor}));
}

TEST(WindowCost, M6_WhatFitsWithALargerWindowFitsWithASmallerOne) {
  const Machine machine = with_device(8 * kGiB);
  bool fitted = true;
  for (std::uint32_t window = 256; window <= 65'536; window += 256) {
    const bool fits = machine.fits(window, 1, 1);
    ASSERT_TRUE(fitted || !fits) << window;
    fitted = fits;
  }
  EXPECT_FALSE(fitted);
}

TEST(WindowCost, M14_WhatWouldFitReallyFits) {
  const Machine machine = with_device(8 * kGiB);
  const auto fits = [&](std::uint32_t window, std::uint32_t sequences) {
    return machine.fits(window, sequences, 1);
  };
  ASSERT_FALSE(fits(131'072, 4));
  const auto smaller = would_fit(131'072, 4, fits);
  ASSERT_TRUE(smaller);
  EXPECT_EQ(smaller->sequences, 4U);
  EXPECT_TRUE(fits(smaller->context, 4));
  EXPECT_FALSE(fits(smaller->context + 256, 4));
}

}  // namespace
}  // namespace berth::core
