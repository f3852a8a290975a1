#include "worker/engine/fixed_seed.h"

#include <gtest/gtest.h>

namespace berth::worker {
namespace {

TEST(FixedSeed, NoSeedIsRandom) {
  EXPECT_EQ(fixed_seed(0), 0U);
  EXPECT_EQ(fixed_seed(7), 7U);
  EXPECT_EQ(fixed_seed(kRandomSeed - 1), kRandomSeed - 1);
  EXPECT_NE(fixed_seed(kRandomSeed), kRandomSeed);
}

}  // namespace
}  // namespace berth::worker
