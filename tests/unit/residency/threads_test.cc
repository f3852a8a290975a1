#include <gtest/gtest.h>

#include <memory>

#include "tests/unit/residency/harness.h"

namespace berth::residency {
namespace {

class ThreadsTest : public ResidencyTest {
 protected:
  ThreadsTest() {
    Limits limits;
    limits.cores = 4;
    residency_ = std::make_unique<Residency>(world_.environment(), limits);
  }
  [[nodiscard]] std::uint32_t threads(const char* model) const {
    return world_.workers.newest(model)->threads();
  }

  std::shared_ptr<catalog::Model> other_ = sim::make_model("other");
};

TEST_F(ThreadsTest, WorkersThatComputeShareTheCores) {
  const auto first = served(demo_);
  EXPECT_EQ(threads("demo"), 4U);
  const auto second = served(other_);
  EXPECT_EQ(threads("demo"), 2U);
  EXPECT_EQ(threads("other"), 2U);
}

TEST_F(ThreadsTest, WhoIsLeftHasThemAllAgain) {
  const auto first = served(demo_);
  const auto second = served(other_);
  first->lease = {};
  EXPECT_TRUE(world_.clock.run_until([&] { return threads("other") == 4U; }, seconds(1)));
  // Who comes back finds the other at work.
  const auto again = served(demo_);
  EXPECT_EQ(threads("demo"), 2U);
  EXPECT_EQ(threads("other"), 2U);
}

TEST_F(ThreadsTest, TheCoresOfAWorkerThatDiedAreGivenBack) {
  const auto first = served(demo_);
  const auto second = served(other_);
  EXPECT_EQ(threads("other"), 2U);
  world_.workers.newest("demo")->die(core::Signalled{9});
  EXPECT_TRUE(world_.clock.run_until([&] { return threads("other") == 4U; }, seconds(10)));
}

}  // namespace
}  // namespace berth::residency
