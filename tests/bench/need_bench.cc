// Time of working out what a model needs, with a catalogue of 200 models on a machine with four
// devices and 20 models resident. `asked_again`: as before, as for each look at who waits.
// `asked_anew`: another budget each time, so that the window is searched anew. Goal: tens of
// microseconds for the former; the latter happens once for each change.

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/load_provenance.h"
#include "supervisor/model_need.h"

namespace berth {
namespace {

constexpr std::uint64_t kMiB = 1ULL << 20;
constexpr std::uint64_t kGiB = 1ULL << 30;
constexpr std::size_t kModels = 200;
constexpr std::size_t kResident = 20;
constexpr core::DomainIndex kDevices = 4;

struct World {
  core::DomainTable table;
  core::Snapshot snapshot;
  std::vector<catalog::Model> models;
  std::shared_ptr<catalog::Config> config = std::make_shared<catalog::Config>();
  std::size_t asked = 0;
  const std::vector<std::string> environment = std::vector<std::string>(40, "SOME_VARIABLE=value");
  ModelNeeds needs{
      {.table = [this]() -> const core::DomainTable& { return table; },
       .config = [this] { return config; },
       .measured = [this](const std::string& key) -> const core::MeasuredLoad* {
         asked += key.size();
         return nullptr;
       },
       .provenance =
           [this](const catalog::Model& model) { return load_provenance(model, environment); },
       .cores = 8}};
};

catalog::Model model_of(std::size_t number, bool on_devices, std::mt19937_64& random) {
  auto parts = std::make_shared<catalog::ModelParts>();
  core::ModelShape& shape = parts->model;
  shape.architecture = "llama";
  shape.layers.assign(28 + random() % 60, {.weights = (100 + random() % 400) * kMiB,
                                           .heads = 32,
                                           .keys = 1024,
                                           .values = 1024,
                                           .feed_forward = 14'336,
                                           .gated = true});
  shape.embedding = 4096;
  shape.vocabulary = 128'000;
  catalog::Model model;
  model.name = "a-model-of-the-catalogue-" + std::to_string(number);
  model.path = "/srv/models/" + model.name + ".gguf";
  model.shards = {model.path};
  model.parts = std::move(parts);
  model.declared_context = 131'072;
  model.served_context = 32'768;
  if (on_devices) model.settings.devices = {"CUDA0", "CUDA1", "CUDA2", "CUDA3"};
  return model;
}

void fill(World& world, bool on_devices) {
  std::mt19937_64 random(7);
  for (core::DomainIndex i = 0; i <= kDevices; ++i) {
    const std::string name = "CUDA" + std::to_string(i - 1);
    world.table.domains.push_back({.id = i == 0 ? "host" : "GPU-8f6a2b1c-" + std::to_string(i),
                                   .device = i == 0 ? "" : name,
                                   .total = 200 * kGiB,
                                   .budget = i == 0 ? 120 * kGiB : 24 * kGiB});
    if (i > 0) world.table.by_device[name] = i;
  }
  for (std::size_t i = 0; i < kModels; ++i) {
    world.models.push_back(model_of(i, on_devices, random));
  }
  world.snapshot.domains = world.table.domains;
  for (std::size_t i = 0; i < kResident; ++i) {
    core::Entry entry;
    entry.id = Uuid::make(WallTime(std::chrono::seconds(1)), random(), random());
    entry.model = world.models[i].name;
    entry.state = core::EntryState::kReady;
    entry.charge[static_cast<core::DomainIndex>(1 + i % kDevices)] = kGiB;
    world.snapshot.entries.push_back(std::move(entry));
  }
}

void ask(benchmark::State& state, bool anew) {
  World world;
  fill(world, state.range(0) != 0);
  core::Need need;
  std::size_t number = 0;
  for (const catalog::Model& model : world.models) world.needs.need(model, world.snapshot, need);
  for (auto _ : state) {
    const catalog::Model& model = world.models[number++ % kModels];
    if (anew) ++world.snapshot.domains[0].budget;
    need.model = model.name;
    benchmark::DoNotOptimize(world.needs.need(model, world.snapshot, need));
  }
}

void asked_again(benchmark::State& state) {
  ask(state, false);
}
void asked_anew(benchmark::State& state) {
  ask(state, true);
}
BENCHMARK(asked_again)->ArgName("on_devices")->DenseRange(0, 1)->Unit(benchmark::kMicrosecond);
BENCHMARK(asked_anew)->ArgName("on_devices")->DenseRange(0, 1)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace berth

BENCHMARK_MAIN();
