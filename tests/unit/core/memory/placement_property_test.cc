#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "supervisor/core/memory/placement_options.h"
#include "supervisor/core/memory/planner.h"
#include "tests/unit/core/memory/layer_costs.h"
#include "tests/unit/core/memory/plans.h"
#include "tests/unit/core/memory/some_plan.h"

namespace berth::core {
namespace {

using testing::any;
using testing::cost_of_layers;
using testing::in_host;
using testing::some_need;
using testing::some_snapshot;

// Whether the layers from `first` on have a place on the devices from `device` on, tried one by
// one.
bool some_split_fits(const ModelCost& cost, const Targets& targets, const DomainBytes& room,
                     Placement placement, std::size_t device, std::uint32_t first) {
  const auto layers = static_cast<std::uint32_t>(cost.parts.front().layers.size());
  if (first == layers) return charge_of(cost, placement).total().fits(room);
  if (device == targets.devices.size()) return false;
  for (std::uint32_t count = 0; first + count <= layers; ++count) {
    Placement more = placement;
    if (count > 0) more.shares.push_back({.device = targets.devices[device], .layers = count});
    if (some_split_fits(cost, targets, room, more, device + 1, first + count)) return true;
  }
  return false;
}

RC_GTEST_PROP(PlacementProperty, M17_WhereSomeSplitFitsOneIsFound, ()) {
  ModelCost cost = cost_of_layers(static_cast<std::size_t>(any(1, 7)));
  for (LayerCost& layer : cost.parts.front().layers) {
    layer.weights = static_cast<std::uint64_t>(any(0, 9));
  }
  cost.device_overhead = static_cast<std::uint64_t>(any(0, 4));
  const Targets targets{.devices = {2, 1, 3}};
  DomainBytes room = in_host(static_cast<std::uint64_t>(any(2, 4)));
  for (const DomainIndex device : targets.devices) {
    room[device] = static_cast<std::uint64_t>(any(0, 30));
  }
  RC_ASSERT(fits_somewhere(cost, targets, room) == some_split_fits(cost, targets, room, {}, 0, 0));
}

RC_GTEST_PROP(PlacementProperty, M17_EveryOptionPlacesAllLayersOnDevicesOfTheModel, ()) {
  const ModelCost cost = cost_of_layers(static_cast<std::size_t>(any(1, 9)));
  const Targets targets{.devices = {2, 1, 3}};
  Snapshot snapshot = some_snapshot();
  snapshot.domains.push_back(testing::domain_of("d3", static_cast<std::uint64_t>(any(0, 90))));
  std::vector<Placement> seen;
  for (const PlacementOption& option : placement_options(cost, targets, snapshot, some_need())) {
    RC_ASSERT(device_layers(option.placement) == cost.parts.front().layers.size());
    RC_ASSERT(option.bytes == charge_of(cost, option.placement).total());
    RC_ASSERT(std::ranges::count(seen, option.placement) == 0);
    seen.push_back(option.placement);
    for (const Placement::Share& share : option.placement.shares) {
      RC_ASSERT(share.layers > 0U);
      RC_ASSERT(std::ranges::count(targets.devices, share.device) == 1);
    }
  }
  RC_ASSERT(seen.size() >= 3U);
}

// A model of small layers on the two devices of any small machine.
struct Placed {
  Snapshot snapshot = some_snapshot();
  Need need = some_need();
  Targets targets{.devices = {1, 2}};
  ModelCost cost = cost_of_layers(static_cast<std::size_t>(any(1, 6)));

  Placed() {
    for (LayerCost& layer : cost.parts.front().layers) {
      layer.weights = static_cast<std::uint64_t>(any(1, 8));
    }
  }
  [[nodiscard]] Decision decide() {
    need.options = placement_options(cost, targets, snapshot, need);
    return plan(snapshot, need);
  }
};

RC_GTEST_PROP(PlacementProperty, M17_M7_MoreBudgetNeverMakesTheAnswerWorse, ()) {
  Placed placed;
  const Decision before = placed.decide();
  for (Domain& domain : placed.snapshot.domains) {
    const auto more = static_cast<std::uint64_t>(any(0, 20));
    domain.budget += more;
    domain.total += more;
  }
  const Decision after = placed.decide();
  if (!std::holds_alternative<Refuse>(before)) RC_ASSERT(!std::holds_alternative<Refuse>(after));
  if (std::holds_alternative<Fits>(before)) RC_ASSERT(std::holds_alternative<Fits>(after));
}

// Without pins, stuck processes and other people's programs a model is refused only if no split at
// all fits the budgets.
RC_GTEST_PROP(PlacementProperty, M14_WhatSomeSplitFitsIsNotRefused, ()) {
  Placed placed;
  for (Entry& entry : placed.snapshot.entries) {
    entry.pinned = false;
    if (entry.state == EntryState::kStuck) entry.state = EntryState::kReady;
  }
  for (Domain& domain : placed.snapshot.domains) {
    domain.foreign = 0;
    domain.lost = false;
  }
  const DomainBytes whole = whole_budget(placed.snapshot.domains);
  RC_ASSERT(std::holds_alternative<Refuse>(placed.decide()) !=
            some_split_fits(placed.cost, placed.targets, whole, {}, 0, 0));
}

}  // namespace
}  // namespace berth::core
