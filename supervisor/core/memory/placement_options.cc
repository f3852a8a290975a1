#include "supervisor/core/memory/placement_options.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "supervisor/core/memory/plan_book.h"
#include "supervisor/core/memory/saturating.h"

namespace berth::core {
namespace {

// What the layers of a model take on a device: a table that is read once for each split.
struct LayerTable {
  std::uint64_t fixed = 0;  // on each device that has any
  std::uint64_t split = 0;  // and there, too, where several have them all
  // Sums of the layers for the devices, in their order: upto[i] is that of the first i.
  std::vector<std::uint64_t> upto{0};

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(upto.size() - 1); }
  // How many of the layers from `first` on fit into `room` bytes; at most all.
  [[nodiscard]] std::uint32_t fit(std::uint32_t first, std::uint64_t room) const {
    const std::uint64_t each = saturating_add(fixed, split);
    if (room < each) return 0;
    const std::uint64_t last = saturating_add(upto[first], room - each);
    const auto end = std::upper_bound(upto.begin() + first, upto.end(), last);
    return static_cast<std::uint32_t>(end - upto.begin()) - first - 1;
  }
};

std::uint64_t bytes_of(const LayerCost& layer) {
  return saturating_add(layer.weights, layer.kv);
}

LayerTable layer_table(const ModelCost& cost, const Targets& targets) {
  LayerTable table;
  table.fixed = cost.device_overhead;
  std::uint64_t drafts = 0;
  for (const PartCost& part : cost.parts) {
    table.fixed = saturating_add(table.fixed, part.device_working);
    table.split = saturating_add(table.split, part.pipelined_working);
    if (&part == &cost.parts.front()) continue;
    for (const LayerCost& layer : part.layers) drafts = saturating_add(drafts, bytes_of(layer));
  }
  const auto& layers = cost.parts.front().layers;
  const auto all = static_cast<std::uint32_t>(layers.size());
  const std::uint32_t placed = std::min(targets.device_layers.value_or(all), all);
  if (placed < all) table.split = 0;
  // A draft model is spread in the model's proportions: each layer carries its part of it.
  const std::uint64_t draft_part = placed == 0 ? 0 : (drafts + placed - 1) / placed;
  for (std::uint32_t i = all - placed; i < all; ++i) {
    const std::uint64_t bytes = saturating_add(bytes_of(layers[i]), draft_part);
    table.upto.push_back(saturating_add(table.upto.back(), bytes));
  }
  return table;
}

Placement without_empty(Placement placement) {
  std::erase_if(placement.shares, [](const Placement::Share& share) { return share.layers == 0; });
  return placement;
}

// As many layers on each device as its part of the room.
Placement in_proportion(const LayerTable& table, const Targets& targets, const DomainBytes& room) {
  double whole = 0;
  for (const DomainIndex device : targets.devices) whole += static_cast<double>(room[device]);
  Placement placement;
  double before = 0;
  std::uint32_t given = 0;
  for (const DomainIndex device : targets.devices) {
    before += static_cast<double>(room[device]);
    const double upto = whole > 0 ? before / whole * table.count() : 0;
    const auto bounded = std::min(static_cast<std::uint32_t>(upto + 0.5), table.count());
    placement.shares.push_back({.device = device, .layers = bounded - given});
    given = bounded;
  }
  placement.shares.back().layers += table.count() - given;
  return without_empty(std::move(placement));
}

// One device after the other, each as full as it goes; absent: not all layers have a place.
std::optional<Placement> filled_up(const LayerTable& table, const Targets& targets,
                                   const DomainBytes& room) {
  Placement placement;
  std::uint32_t next = 0;
  for (const DomainIndex device : targets.devices) {
    const std::uint32_t layers = table.fit(next, room[device]);
    placement.shares.push_back({.device = device, .layers = layers});
    next += layers;
  }
  if (next < table.count()) return std::nullopt;
  return without_empty(std::move(placement));
}

bool on_processor(const LayerTable& table, const Targets& targets) {
  return targets.devices.empty() || table.count() == 0;
}

void add(std::vector<PlacementOption>& options, const ModelCost& cost, Placement placement) {
  const bool known =
      std::ranges::find(options, placement, &PlacementOption::placement) != options.end();
  if (known) return;
  const DomainBytes bytes = charge_of(cost, placement).total();
  options.push_back({.placement = std::move(placement), .bytes = bytes});
}

// Adds it; whether it fits into the room.
bool add_split(std::vector<PlacementOption>& options, const ModelCost& cost,
               const Placement& placement, const DomainBytes& room) {
  add(options, cost, placement);
  return std::ranges::find(options, placement, &PlacementOption::placement)->bytes.fits(room);
}

// A few layers to one side or the other of each border between two devices: neither way to split
// knows which layers of a draft go where. Adds the first that fits.
void add_shifted(std::vector<PlacementOption>& options, const ModelCost& cost,
                 const Placement& from, const DomainBytes& room) {
  constexpr std::uint32_t kMost = 2;
  for (std::size_t border = 0; border + 1 < from.shares.size(); ++border) {
    for (std::uint32_t layers = 1; layers <= kMost; ++layers) {
      for (const auto& [less, more] : {std::pair(border, border + 1), {border + 1, border}}) {
        if (from.shares[less].layers <= layers) continue;
        Placement shifted = from;
        shifted.shares[less].layers -= layers;
        shifted.shares[more].layers += layers;
        if (charge_of(cost, shifted).total().fits(room)) return add(options, cost, shifted);
      }
    }
  }
}

void add_splits(std::vector<PlacementOption>& options, const ModelCost& cost,
                const LayerTable& table, const Targets& targets, const DomainBytes& room) {
  const Placement even = in_proportion(table, targets, room);
  if (add_split(options, cost, even, room)) return;
  const std::optional<Placement> full = filled_up(table, targets, room);
  if (full && add_split(options, cost, *full, room)) return;
  add_shifted(options, cost, full.value_or(even), room);
}

void add_singles(std::vector<PlacementOption>& options, const ModelCost& cost,
                 const LayerTable& table, const Targets& targets) {
  for (const DomainIndex device : targets.devices) {
    add(options, cost, {.shares = {{.device = device, .layers = table.count()}}});
  }
}

// What a split may count on: from what is free at once, beside older waiters' holds, to everything.
std::array<DomainBytes, 6> rooms_for(const PlanBook& book) {
  const DomainBytes coming = book.leaving + book.closing;
  DomainBytes victims;
  for (std::size_t i = 0; i < book.judged.size(); ++i) {
    if (book.judged[i].standing != Standing::kVictim || book.freed_entry[i]) continue;
    victims += book.snapshot->entries[i].charge;
  }
  if (book.need->caller != CallerClass::kIdle) {
    for (const IdleJob& job : book.snapshot->jobs) victims += job.extra;
  }
  const DomainBytes at_last = book.limit - (book.charged - coming - book.freed) - book.held;
  const DomainBytes free = at_most(book.limit - book.charged, at_last);
  const DomainBytes with_victims =
      at_most(book.limit - (book.charged - coming - victims),
              book.limit - (book.charged - coming - book.freed - victims) - book.held);
  const DomainBytes stays = book.pinned + book.stuck;
  return {at_most(book.limit - book.charged - book.bank, at_last - book.bank),
          free,
          with_victims,
          book.limit - stays,
          book.hard_limit - stays,
          book.hard_limit};
}

}  // namespace

std::vector<PlacementOption> placement_options(const ModelCost& cost, const Targets& targets,
                                               const Snapshot& snapshot, const Need& need) {
  std::vector<PlacementOption> options;
  const LayerTable table = layer_table(cost, targets);
  if (on_processor(table, targets)) {
    add(options, cost, {});
    return options;
  }
  add_singles(options, cost, table, targets);
  if (targets.devices.size() < 2) return options;
  for (const DomainBytes& room : rooms_for(plan_book(snapshot, need))) {
    add_splits(options, cost, table, targets, room);
  }
  return options;
}

bool fits_somewhere(const ModelCost& cost, const Targets& targets, const DomainBytes& room) {
  std::vector<PlacementOption> options;
  const LayerTable table = layer_table(cost, targets);
  if (on_processor(table, targets)) {
    add(options, cost, {});
  } else {
    add_singles(options, cost, table, targets);
    if (targets.devices.size() > 1) add_splits(options, cost, table, targets, room);
  }
  return std::ranges::any_of(
      options, [&](const PlacementOption& option) { return option.bytes.fits(room); });
}

DomainBytes whole_budget(const Domains& domains, double share) {
  DomainBytes whole;
  for (std::size_t i = 0; i < std::min(domains.size(), kMaxDomains); ++i) {
    Domain alone = domains[i];
    alone.foreign = 0;
    const auto limit = static_cast<double>(alone.limit());
    whole[static_cast<DomainIndex>(i)] =
        share >= 1 ? alone.limit() : static_cast<std::uint64_t>(limit * std::max(share, 0.0));
  }
  return whole;
}

}  // namespace berth::core
