#include "supervisor/core/memory/window.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

namespace berth::core {
namespace {

// A model of `fixed` bytes and one byte for each token, in a budget.
WindowFits budget(double bytes, double fixed = 0) {
  return [=](std::uint32_t window, double share) { return fixed + window <= bytes * share; };
}

constexpr std::uint32_t kDeclared = 131'072;

TEST(Window, M6_AConfiguredOneIsTaken) {
  EXPECT_EQ(served_window({.configured = 1000, .declared = 512}, budget(0)),
            (ServedWindow{1000, WindowBound::kConfigured}));
}

TEST(Window, M6_TheLeastTermBinds) {
  const auto all = budget(1e9);
  EXPECT_EQ(served_window({.declared = kDeclared}, all),
            (ServedWindow{32'768, WindowBound::kAutoMax}));
  EXPECT_EQ(served_window({.declared = kDeclared, .probed = 20'000}, all),
            (ServedWindow{20'000, WindowBound::kProbe}));
  EXPECT_EQ(served_window({.declared = 8192, .probed = 20'000}, all),
            (ServedWindow{8192, WindowBound::kDeclared}));
  EXPECT_EQ(served_window({.declared = 0}, all), (ServedWindow{32'768, WindowBound::kAutoMax}));
  EXPECT_EQ(served_window({.declared = kDeclared, .auto_max = 100'000}, budget(70'000)),
            (ServedWindow{69'888, WindowBound::kBudget}));
}

TEST(Window, M6_InCompanyOnlyAShareOfTheBudget) {
  WindowTerms terms{.declared = kDeclared};
  EXPECT_EQ(served_window(terms, budget(40'000)), (ServedWindow{32'768, WindowBound::kAutoMax}));
  terms.company = true;
  EXPECT_EQ(served_window(terms, budget(40'000)), (ServedWindow{19'968, WindowBound::kShare}));
  terms.auto_share = 1;
  EXPECT_EQ(served_window(terms, budget(20'000)), (ServedWindow{19'968, WindowBound::kBudget}));
}

TEST(Window, M6_NeverBelow4096OrTheDeclaredWindow) {
  EXPECT_EQ(served_window({.declared = kDeclared, .company = true}, budget(20'000, 18'000)),
            (ServedWindow{4096, WindowBound::kFloor}));
  EXPECT_EQ(served_window({.declared = kDeclared, .probed = 100}, budget(1e9)),
            (ServedWindow{4096, WindowBound::kFloor}));
  EXPECT_EQ(served_window({.declared = 2048}, budget(0)),
            (ServedWindow{2048, WindowBound::kDeclared}));
}

TEST(Window, M6_TheFigureIsTheLargestStepThatFits) {
  for (std::uint32_t bytes = 5000; bytes < 40'000; bytes += 333) {
    const auto window = served_window({.declared = kDeclared}, budget(bytes));
    ASSERT_LE(window.tokens, bytes);
    ASSERT_TRUE(window.tokens == 32'768 || window.tokens + 256 > bytes);
  }
}

TEST(Window, M14_WhatWouldFitIsTheLargestWindowElseFewerSequences) {
  // A byte for each token and 1000 for each sequence.
  const auto fits = [](std::uint32_t bytes) {
    return [bytes](std::uint32_t window, std::uint32_t sequences) {
      return window + 1000 * sequences <= bytes;
    };
  };
  const auto window = would_fit(8192, 4, fits(8000));
  ASSERT_TRUE(window);
  EXPECT_EQ(window->context, 3840U);
  EXPECT_EQ(window->sequences, 4U);
  const auto fewer = would_fit(8192, 4, fits(3000));
  ASSERT_TRUE(fewer);
  EXPECT_EQ(fewer->context, 768U);
  EXPECT_EQ(fewer->sequences, 2U);
  EXPECT_EQ(would_fit(8192, 4, fits(500)), std::nullopt);
}

}  // namespace
}  // namespace berth::core
