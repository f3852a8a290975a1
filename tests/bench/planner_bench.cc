// Time of one plan on a machine with four devices, a catalogue of 200 models and 20 of them
// resident: the snapshot copied, the ways to place the model worked out, and the decision made. The
// argument says how full the machine is: 0 leaves room, 1 needs victims, 2 has clients everywhere,
// so that every way is tried to its end. Goal: at most 200 microseconds.

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/memory/placement_options.h"
#include "supervisor/core/memory/planner.h"

namespace berth::core {
namespace {

using std::chrono::seconds;

constexpr std::uint64_t kMiB = 1ULL << 20;
constexpr std::uint64_t kGiB = 1ULL << 30;
constexpr SteadyTime kNow{std::chrono::hours(10)};
constexpr std::size_t kCatalogue = 200;
constexpr std::size_t kResident = 20;
constexpr DomainIndex kDevices = 4;

ModelCost cost_of_model(std::mt19937_64& random) {
  PartCost part;
  part.host_weights = 300 * kMiB;
  const std::size_t layers = 28 + random() % 60;
  part.layers.assign(layers, {.weights = (100 + random() % 400) * kMiB, .kv = 32 * kMiB});
  part.device_working = 500 * kMiB;
  ModelCost cost;
  cost.parts = {part};
  cost.host_overhead = 100 * kMiB;
  cost.device_overhead = 400 * kMiB;
  return cost;
}

struct World {
  Snapshot snapshot;
  std::vector<ModelCost> catalogue;
  Targets targets;
};

World make_world(int fullness) {
  World world;
  std::mt19937_64 random(7);
  for (std::size_t i = 0; i < kCatalogue; ++i) world.catalogue.push_back(cost_of_model(random));
  Snapshot& snapshot = world.snapshot;
  snapshot.now = kNow;
  for (DomainIndex i = 0; i <= kDevices; ++i) {
    Domain domain;
    domain.id = i == 0 ? "host" : "0000:0" + std::to_string(i) + ":00.0/GPU-8f6a2b1c";
    domain.total = 200 * kGiB;
    domain.budget = fullness == 0 ? 190 * kGiB : 48 * kGiB;
    snapshot.domains.push_back(domain);
    if (i > 0) world.targets.devices.push_back(i);
  }
  for (std::size_t i = 0; i < kResident; ++i) {
    Entry entry;
    entry.id = Uuid::make(WallTime(seconds(1'000'000)), random(), random());
    entry.model = "a-model-of-the-catalogue-" + std::to_string(i);
    entry.state = EntryState::kReady;
    entry.charge[static_cast<DomainIndex>(1 + i % kDevices)] = (8 + random() % 3) * kGiB;
    entry.charge[kHostDomain] = kGiB;
    entry.clients = fullness == 2 ? 1 : 0;
    entry.idle_since = entry.last_used = kNow - seconds(20 + random() % 1000);
    entry.reload = seconds(1 + random() % 20);
    snapshot.entries.push_back(std::move(entry));
  }
  snapshot.bank[kHostDomain] = 4 * kGiB;
  snapshot.holds = {{.model = "z",
                     .bytes = DomainBytes::in(1, kGiB),
                     .since = kNow - seconds(5),
                     .until = kNow + seconds(60),
                     .frees = {snapshot.entries[0].id}}};
  return world;
}

Need need_for(const World& world, const Snapshot& snapshot, std::size_t model) {
  Need need{.model = "a-model-of-the-catalogue-" + std::to_string(model),
            .since = kNow - seconds(1),
            .until = kNow + seconds(600)};
  need.options = placement_options(world.catalogue[model], world.targets, snapshot, need);
  return need;
}

void plan_one(benchmark::State& state) {
  const World world = make_world(static_cast<int>(state.range(0)));
  std::size_t model = 0;
  std::size_t admitted = 0;
  for (auto _ : state) {
    const Snapshot snapshot = world.snapshot;
    const Need need = need_for(world, snapshot, model++ % kCatalogue);
    const Decision decision = plan(snapshot, need);
    if (decision.index() < 2) ++admitted;
    benchmark::DoNotOptimize(decision);
  }
  state.counters["at_once"] =
      static_cast<double>(admitted) / static_cast<double>(state.iterations());
}
BENCHMARK(plan_one)->ArgName("fullness")->DenseRange(0, 2)->Unit(benchmark::kMicrosecond);

void plan_with_options_at_hand(benchmark::State& state) {
  const World world = make_world(static_cast<int>(state.range(0)));
  std::vector<Need> needs;
  for (std::size_t i = 0; i < kCatalogue; ++i) {
    needs.push_back(need_for(world, world.snapshot, i));
  }
  std::size_t model = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(plan(world.snapshot, needs[model++ % kCatalogue]));
  }
}
BENCHMARK(plan_with_options_at_hand)
    ->ArgName("fullness")
    ->DenseRange(0, 2)
    ->Unit(benchmark::kMicrosecond);

// Every model of the catalogue waits, and only the oldest ones count for the need.
void plan_beside_holds(benchmark::State& state) {
  World world = make_world(1);
  for (std::size_t i = 0; i < kCatalogue; ++i) {
    Hold hold{.model = "m" + std::to_string(i),
              .bytes = DomainBytes::in(1, kMiB),
              .since = kNow - seconds(2 + i),
              .until = kNow + seconds(60)};
    hold.frees = {world.snapshot.entries[i % kResident].id};
    world.snapshot.holds.push_back(std::move(hold));
  }
  const Need need = need_for(world, world.snapshot, 3);
  for (auto _ : state) benchmark::DoNotOptimize(plan(world.snapshot, need));
}
BENCHMARK(plan_beside_holds)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace berth::core

BENCHMARK_MAIN();
