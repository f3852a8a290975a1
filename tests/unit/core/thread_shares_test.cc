#include "supervisor/core/thread_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

namespace berth::core {
namespace {

using testing::ElementsAre;
using Threads = std::vector<std::uint32_t>;

TEST(ThreadShares, OneAloneGetsWhatItWants) {
  EXPECT_THAT(share_threads(8, Threads{8}), ElementsAre(8));
  EXPECT_THAT(share_threads(8, Threads{2}), ElementsAre(2));
  EXPECT_THAT(share_threads(2, Threads{16}), ElementsAre(2));
}

TEST(ThreadShares, SeveralShareFairly) {
  EXPECT_THAT(share_threads(8, Threads{8, 8}), ElementsAre(4, 4));
  EXPECT_THAT(share_threads(8, Threads{8, 8, 8}), ElementsAre(3, 3, 2));
  EXPECT_THAT(share_threads(8, Threads{1, 8}), ElementsAre(1, 7));
}

TEST(ThreadShares, WithMoreWorkersThanCoresEachGetsOne) {
  EXPECT_THAT(share_threads(2, Threads{2, 2, 2}), ElementsAre(1, 1, 1));
  EXPECT_THAT(share_threads(0, Threads{4}), ElementsAre(1));
}

RC_GTEST_PROP(ThreadShares, NeverMoreThreadsThanCores, ()) {
  const auto cores = *rc::gen::inRange<std::uint32_t>(1, 64);
  const auto wanted = *rc::gen::container<Threads>(rc::gen::inRange<std::uint32_t>(1, 70));
  const auto shares = share_threads(cores, wanted);
  RC_ASSERT(shares.size() == wanted.size());
  const auto sum = std::accumulate(shares.begin(), shares.end(), 0U);
  RC_ASSERT(sum <= std::max(cores, static_cast<std::uint32_t>(wanted.size())));
  const auto all = std::accumulate(wanted.begin(), wanted.end(), 0U);
  RC_ASSERT(sum >= std::min(cores, all));
  for (std::size_t i = 0; i < shares.size(); ++i) {
    RC_ASSERT(shares[i] >= 1U);
    RC_ASSERT(shares[i] <= wanted[i]);
    for (std::size_t k = 0; k < shares.size(); ++k) {
      if (shares[i] < wanted[i]) RC_ASSERT(shares[k] <= shares[i] + 1);
    }
  }
}

}  // namespace
}  // namespace berth::core
