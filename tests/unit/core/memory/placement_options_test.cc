#include "supervisor/core/memory/placement_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "supervisor/core/memory/planner.h"
#include "tests/unit/core/memory/layer_costs.h"
#include "tests/unit/core/memory/plans.h"

namespace berth::core {
namespace {

using testing::busy;
using testing::cost_of_layers;
using testing::in_host;
using ::testing::IsEmpty;
using testing::machine;
using testing::need_of;
using testing::on;
using ::testing::SizeIs;

Need a_need() {
  return need_of("m", {});
}

using Shares = std::vector<Placement::Share>;

bool has(const std::vector<PlacementOption>& options, const Shares& shares) {
  return std::ranges::any_of(
      options, [&](const PlacementOption& option) { return option.placement.shares == shares; });
}

// What the planner makes of it for a client.
Decision place(const Snapshot& snapshot, const ModelCost& cost, const Targets& targets) {
  Need need = need_of("m", {});
  need.options = placement_options(cost, targets, snapshot, need);
  return plan(snapshot, need);
}

Shares shares_of(const Decision& decision) {
  const Fits* fits = std::get_if<Fits>(&decision);
  EXPECT_NE(fits, nullptr) << decision_name(decision);
  return fits ? fits->at.placement.shares : Shares();
}

TEST(PlacementOptions, M17_AModelWithoutDevicesIsInTheHostAndOnlyThere) {
  const auto options = placement_options(cost_of_layers(4), {}, machine(100, {100}), a_need());
  ASSERT_THAT(options, SizeIs(1));
  EXPECT_THAT(options[0].placement.shares, IsEmpty());
  EXPECT_EQ(options[0].bytes, in_host(43));
}

TEST(PlacementOptions, M14_AModelOfADeviceIsNeverInTheHost) {
  const Snapshot snapshot = machine(1000, {20, 20});
  for (const auto& option :
       placement_options(cost_of_layers(9), {.devices = {1, 2}}, snapshot, a_need())) {
    EXPECT_GT(device_layers(option.placement), 0U);
    EXPECT_EQ(option.bytes[kHostDomain], 3U);
  }
  const Decision decision = place(snapshot, cost_of_layers(9), {.devices = {1, 2}});
  EXPECT_TRUE(std::holds_alternative<Refuse>(decision));
}

TEST(PlacementOptions, M17_FitsOneDeviceWhereTheLeastIsLeft) {
  const Snapshot snapshot = machine(100, {90, 60, 70});
  EXPECT_EQ(shares_of(place(snapshot, cost_of_layers(5), {.devices = {1, 2, 3}})),
            (Shares{{.device = 2, .layers = 5}}));
}

TEST(PlacementOptions, M17_TheConfigurationFixesDevices) {
  const Snapshot snapshot = machine(100, {90, 60, 70});
  EXPECT_EQ(shares_of(place(snapshot, cost_of_layers(5), {.devices = {3}})),
            (Shares{{.device = 3, .layers = 5}}));
}

TEST(PlacementOptions, M17_ElseSplitByFreeMemory) {
  Snapshot snapshot = machine(100, {100, 100});
  EXPECT_EQ(shares_of(place(snapshot, cost_of_layers(12), {.devices = {1, 2}})),
            (Shares{{.device = 1, .layers = 6}, {.device = 2, .layers = 6}}));
  snapshot.entries = {busy(1, "a", on(1, 50))};
  EXPECT_EQ(shares_of(place(snapshot, cost_of_layers(12), {.devices = {1, 2}})),
            (Shares{{.device = 1, .layers = 4}, {.device = 2, .layers = 8}}));
}

TEST(PlacementOptions, M17_FilledUpWhereProportionsAreTooCoarse) {
  // 2 and 10 layers, and not a byte more: by proportion the first would get 2.08 of 12.
  const Snapshot snapshot = machine(100, {22, 102, 5});
  EXPECT_EQ(shares_of(place(snapshot, cost_of_layers(12), {.devices = {1, 2, 3}})),
            (Shares{{.device = 1, .layers = 2}, {.device = 2, .layers = 10}}));
}

TEST(PlacementOptions, M17_PartOfTheLayersOnADeviceWhereTheConfigurationSaysSo) {
  const Snapshot snapshot = machine(100, {40, 90});
  const auto options = placement_options(cost_of_layers(8), {.devices = {1}, .device_layers = 3},
                                         snapshot, a_need());
  ASSERT_THAT(options, SizeIs(1));
  EXPECT_EQ(options[0].bytes[1], 32U);
  EXPECT_EQ(options[0].bytes[kHostDomain], 53U);
}

TEST(PlacementOptions, M17_ASplitIsFoundWhereSomebodyHasToGoFirst) {
  Snapshot snapshot = machine(100, {100, 100});
  snapshot.entries = {testing::ready(1, "a", on(1, 90)), busy(2, "b", on(2, 10))};
  const auto options =
      placement_options(cost_of_layers(15), {.devices = {1, 2}}, snapshot, a_need());
  EXPECT_TRUE(has(options, {{.device = 1, .layers = 8}, {.device = 2, .layers = 7}}));
  EXPECT_EQ(testing::victims_of(plan(snapshot, need_of("m", options))),
            (std::vector<std::string>{"a"}));
}

TEST(PlacementOptions, M17_ASplitIsFoundBesideWhatIsPinnedAndWhatIsInUse) {
  Snapshot snapshot = machine(100, {100, 100});
  snapshot.entries = {busy(1, "a", on(1, 70)), testing::ready(2, "c", on(2, 60))};
  // 2 and 9 layers: only the one that nobody uses goes.
  EXPECT_EQ(testing::victims_of(place(snapshot, cost_of_layers(11), {.devices = {1, 2}})),
            (std::vector<std::string>{"c"}));
  snapshot.entries[0].pinned = true;
  snapshot.entries[1].clients = 1;
  EXPECT_TRUE(
      std::holds_alternative<Park>(place(snapshot, cost_of_layers(11), {.devices = {1, 2}})));
  EXPECT_EQ(testing::as<Refuse>(place(snapshot, cost_of_layers(13), {.devices = {1, 2}})).why,
            RefuseWhy::kPinned);
}

TEST(PlacementOptions, M17_ADraftModelCountsOnEveryDevice) {
  ModelCost cost = cost_of_layers(10);
  cost.parts.push_back(cost.parts.front());
  cost.parts.back().layers.resize(4);
  const Snapshot snapshot = machine(100, {100, 80});
  const Decision decision = place(snapshot, cost, {.devices = {1, 2}});
  const Fits* fits = std::get_if<Fits>(&decision);
  ASSERT_NE(fits, nullptr) << decision_name(decision);
  EXPECT_EQ(fits->at.bytes[1] + fits->at.bytes[2], 146U);
}

// The borders of a draft's layers lie elsewhere, and the last layer is far larger than the others.
TEST(PlacementOptions, M17_MoreRoomNeverTurnsASplitThatFitsIntoNone) {
  ModelCost cost = cost_of_layers(10);
  cost.parts.front().layers.back().weights = 40;
  cost.parts.front().pipelined_working = 3;
  cost.parts.push_back(cost.parts.front());
  cost.parts.back().layers.resize(4);
  cost.parts.back().layers.back().weights = 40;
  const Targets both{.devices = {1, 2}};
  for (std::uint64_t other = 60; other < 160; other += 5) {
    bool fitted = false;
    for (std::uint64_t room = 60; room < 260; ++room) {
      const bool fits = fits_somewhere(cost, both, in_host(100) + on(1, room) + on(2, other));
      EXPECT_TRUE(fits || !fitted) << room << " beside " << other;
      fitted = fits;
    }
  }
}

TEST(PlacementOptions, M6_WhetherAModelFitsSomewhere) {
  const Targets both{.devices = {1, 2}};
  EXPECT_TRUE(fits_somewhere(cost_of_layers(12), both, in_host(3) + on(1, 22) + on(2, 102)));
  EXPECT_FALSE(fits_somewhere(cost_of_layers(12), both, in_host(3) + on(1, 21) + on(2, 102)));
  EXPECT_FALSE(fits_somewhere(cost_of_layers(12), both, in_host(2) + on(1, 200)));
  EXPECT_TRUE(fits_somewhere(cost_of_layers(12), {}, in_host(123)));
  EXPECT_FALSE(fits_somewhere(cost_of_layers(12), {}, in_host(122)));
  EXPECT_EQ(whole_budget(machine(100, {50}).domains, 0.5), in_host(50) + on(1, 25));
}

}  // namespace
}  // namespace berth::core
