#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "supervisor/catalog/model.h"
#include "supervisor/residency/residency.h"
#include "tests/unit/residency/room_harness.h"

namespace berth::residency {
namespace {

using testing::HasSubstr;

// Pins of the configuration, and what pins do to others (M16).
class PinsTest : public RoomTest {
 protected:
  // As a reload does.
  void configuration_pins(std::vector<std::shared_ptr<const catalog::Model>> models) {
    world_.configured_pins = std::move(models);
    residency_->catalog_changed();
    world_.clock.settle();
  }
  // Where it is alone it takes `alone`, else `beside`.
  std::shared_ptr<catalog::Model> windowed(const std::string& name, std::uint64_t beside,
                                           std::uint64_t alone) {
    world_.memory.needs_alone[name] = {
        {.bytes = core::DomainBytes::in(core::kHostDomain, alone * kMiB)}};
    return host_model(name, beside);
  }
  [[nodiscard]] std::uint64_t needed(const catalog::Model& model) const {
    return residency_->plan(model).need.options.at(0).bytes[core::kHostDomain] / kMiB;
  }
};

TEST_F(PinsTest, M16_APinThatIsTakenOutOfTheConfigurationEndsAtTheReload) {
  const auto a = host_model("a", 600);
  a->settings.ttl = minutes(1);
  a->settings.pin = true;
  configuration_pins({a});
  resident(a);
  world_.clock.advance(minutes(5));
  ASSERT_EQ(state_of("a"), "ready");
  EXPECT_TRUE(residency_->pinned("a"));
  EXPECT_FALSE(residency_->unpin("a")) << "the configuration's is not one by hand";
  EXPECT_TRUE(residency_->pinned("a"));
  configuration_pins({});
  EXPECT_FALSE(residency_->pinned("a"));
  EXPECT_FALSE(residency_->instances().at(0).pinned);
  const auto client = request(host_model("b", 600));
  world_.clock.advance(seconds(15));
  EXPECT_TRUE(client->lease) << "it may go for others";
}

TEST_F(PinsTest, M16_WhatIsUnpinnedByAReloadGoesForIdlenessAgain) {
  const auto a = host_model("a", 600);
  a->settings.ttl = minutes(1);
  a->settings.pin = true;
  configuration_pins({a});
  resident(a);
  world_.clock.advance(minutes(5));
  ASSERT_EQ(state_of("a"), "ready");
  configuration_pins({});
  world_.clock.advance(minutes(1) + seconds(1));
  EXPECT_EQ(state_of("a"), "absent");
}

TEST_F(PinsTest, M16_APinThatTheConfigurationGetsCountsAtTheReload) {
  const auto a = host_model("a", 600);
  a->settings.ttl = minutes(1);
  resident(a);
  configuration_pins({a});
  EXPECT_TRUE(residency_->instances().at(0).pinned);
  world_.clock.advance(minutes(5));
  EXPECT_EQ(state_of("a"), "ready");
  const auto client = request(host_model("b", 600));
  world_.clock.advance(seconds(15));
  EXPECT_TRUE(client->failed_with(Reason::kNoRoom));
}

TEST_F(PinsTest, M16_APinByHandOutlivesTheConfigurations) {
  const auto a = host_model("a", 600);
  configuration_pins({a});
  ASSERT_TRUE(residency_->pin(a));
  resident(a);
  configuration_pins({});
  EXPECT_TRUE(residency_->pinned("a"));
  EXPECT_TRUE(residency_->unpin("a"));
  EXPECT_FALSE(residency_->pinned("a"));
}

TEST_F(PinsTest, M6_M16_APinnedModelIsCompanyBeforeItIsLoaded) {
  const auto a = windowed("a", 450, 900);
  const auto b = windowed("b", 450, 900);
  EXPECT_EQ(needed(*b), 900U);
  ASSERT_TRUE(residency_->pin(a));
  EXPECT_EQ(needed(*b), 450U);
  EXPECT_EQ(needed(*a), 900U) << "a pin is no company of its own model";
  resident(b);
  resident(a);
  EXPECT_EQ(state_of("b"), "ready") << "there is room for both";
  EXPECT_TRUE(residency_->unpin("a"));
}

TEST_F(PinsTest, M6_M16_SoIsOneThatTheConfigurationPins) {
  const auto a = windowed("a", 450, 900);
  const auto b = windowed("b", 450, 900);
  configuration_pins({a});
  EXPECT_EQ(needed(*b), 450U);
  const auto broken = std::make_shared<catalog::Model>(*a);
  broken->problem = "a.gguf is cut off.";
  configuration_pins({broken});
  EXPECT_EQ(needed(*b), 900U) << "it will not come";
}

TEST_F(PinsTest, M16_ThePinsOfTwoAreJudgedWithTheWindowsThatTheyHaveTogether) {
  ASSERT_TRUE(residency_->pin(windowed("a", 450, 900)));
  EXPECT_TRUE(residency_->pin(windowed("b", 450, 900)));
}

TEST_F(PinsTest, M16_PinsOfTheConfigurationThatDoNotFitTogetherAreTold) {
  configuration_pins({host_model("a", 500), host_model("b", 300)});
  EXPECT_THAT(residency_->pin_problems(), ::testing::IsEmpty());
  configuration_pins({host_model("a", 500), host_model("b", 700), host_model("c", 400)});
  const auto problems = residency_->pin_problems();
  ASSERT_EQ(problems.size(), 1U) << "c fits beside a";
  EXPECT_THAT(problems[0], HasSubstr("The configuration pins b, which does not fit beside"));
  EXPECT_THAT(problems[0], HasSubstr("a has 500 MiB of host"));
  EXPECT_TRUE(residency_->pinned_by_configuration("b"));
  ASSERT_TRUE(residency_->pin(host_model("d", 100)));
  EXPECT_FALSE(residency_->pinned_by_configuration("d"));
}

TEST_F(PinsTest, M16_UnloadOfWhatTheConfigurationPinsSaysSo) {
  const auto a = host_model("a", 500);
  configuration_pins({a});
  resident(a);
  std::string message;
  residency_->unload("a", false, [&](const Result<UnloadOutcome>& outcome) {
    message = outcome ? "" : outcome.error().message;
  });
  world_.clock.settle();
  EXPECT_THAT(message, HasSubstr("a is pinned by the configuration"));
}

TEST_F(PinsTest, M16_ARefusedPinSaysWhatEachPinnedModelTakes) {
  configuration_pins({host_model("a", 500)});
  ASSERT_TRUE(residency_->pin(host_model("b", 300)));
  const Status refused = residency_->pin(host_model("c", 400));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, Reason::kNoRoom);
  EXPECT_THAT(refused.error().message,
              HasSubstr("(a has 500 MiB of host and b has 300 MiB of host)"));
  EXPECT_THAT(refused.error().message, HasSubstr("200 MiB of host are missing"));
}

}  // namespace
}  // namespace berth::residency
