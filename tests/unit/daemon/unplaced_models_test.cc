#include "supervisor/unplaced_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/sim_clock.h"
#include "tests/simulation/sim_events.h"
#include "tests/simulation/sim_world.h"

namespace berth {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Unplaced : public ::testing::Test {
 protected:
  void models(const std::vector<std::string>& names) {
    std::vector<std::shared_ptr<const catalog::Model>> made;
    made.reserve(names.size());
    for (const std::string& name : names) made.push_back(sim::make_model(name));
    catalog_ = std::make_shared<const catalog::Catalog>(std::move(made));
  }

  sim::SimClock clock_;
  sim::SimEvents events_{clock_};
  std::shared_ptr<const catalog::Catalog> catalog_;
  std::set<std::string> without_device_;
  std::vector<std::string> pin_problems_;
  UnplacedModels unplaced_{{.events = events_,
                            .catalog = [this] { return catalog_; },
                            .problem = [this](const catalog::Model& model) -> std::string {
                              return without_device_.contains(model.name) ? "No CUDA7." : "";
                            },
                            .pins = [this] { return pin_problems_; }}};
};

TEST_F(Unplaced, M16_PinsThatDoNotFitAreToldOnce) {
  models({"a"});
  pin_problems_ = {"a does not fit."};
  unplaced_.look();
  unplaced_.look();
  EXPECT_THAT(unplaced_.sentences(), ElementsAre("a does not fit."));
  EXPECT_EQ(events_.count("server.degraded"), 1U);
}

TEST_F(Unplaced, M17_AModelWithoutItsDeviceIsToldOnceAndAsLongAsThatIsSo) {
  models({"a", "b", "c"});
  without_device_ = {"a", "c"};
  unplaced_.look();
  unplaced_.look();
  EXPECT_THAT(unplaced_.sentences(),
              ElementsAre("a cannot be loaded: No CUDA7.", "c cannot be loaded: No CUDA7."));
  EXPECT_EQ(events_.count("server.degraded"), 2U);
  EXPECT_EQ(sim::SimEvents::field(*events_.last("server.degraded"), "part"), "model");
  without_device_ = {"c"};
  unplaced_.look();
  EXPECT_THAT(unplaced_.sentences(), ElementsAre("c cannot be loaded: No CUDA7."));
  models({"a", "b"});
  EXPECT_THAT(unplaced_.sentences(), IsEmpty());
  without_device_ = {"a"};
  unplaced_.look();
  EXPECT_EQ(events_.count("server.degraded"), 3U) << "it is news again";
}

TEST_F(Unplaced, M17_ManyAreCounted) {
  std::vector<std::string> names;
  for (int i = 0; i < 130; ++i) names.push_back("m" + std::to_string(i));
  models(names);
  without_device_.insert(names.begin(), names.end());
  const std::vector<std::string> told = unplaced_.sentences();
  ASSERT_THAT(told, SizeIs(UnplacedModels::kMostTold + 1));
  EXPECT_EQ(told.back(), "The devices of 30 more models are not there.");
}

}  // namespace
}  // namespace berth
