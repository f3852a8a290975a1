#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "supervisor/core/memory/cost_model.h"
#include "supervisor/core/memory/domain.h"
#include "supervisor/core/memory/placement.h"
#include "supervisor/core/memory/snapshot.h"

namespace berth::core {

// Where a model may be.
struct Targets {
  // Domains of its devices, each once, in the configuration's order, below kMaxDomains; empty: the
  // processor.
  std::vector<DomainIndex> devices{};
  // Layers that go to them, the output counted; absent: all. What is left is in the host.
  std::optional<std::uint32_t> device_layers{};

  bool operator==(const Targets&) const = default;
};

// The ways to place a model (M17): on each device alone, and split over all of them in proportion
// to their memory, or filled up one after the other where that is too coarse: by what is free now,
// by what there is once those have gone who may go for `need` (whose own options are not read), and
// by what there is at all. Never silently in the host (M14). Not empty; each once. `cost` is that
// of one window.
std::vector<PlacementOption> placement_options(const ModelCost& cost, const Targets& targets,
                                               const Snapshot& snapshot, const Need& need);

// Whether the model can be placed in `room` alone.
bool fits_somewhere(const ModelCost& cost, const Targets& targets, const DomainBytes& room);

// What the domains may give at most, with nobody else's programs there; `share` of it.
DomainBytes whole_budget(const Domains& domains, double share = 1);

}  // namespace berth::core
