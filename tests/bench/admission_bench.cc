// What admission costs the core strand, in simulated time: everything but processes and their
// sockets is the real thing. Goals: a place on a ready model within 20 microseconds, and waiters
// that cost as much each at 1,000 as at 100, within a factor of two.

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/residency/request_book.h"
#include "supervisor/residency/residency.h"
#include "tests/simulation/sim_world.h"

namespace berth::residency {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::uint64_t kMiB = 1ULL << 20U;
constexpr std::size_t kModels = 10;

// One request: takes its place, and gives it back at once unless it is to keep it.
class Client : public ClaimObserver {
 public:
  // Counts in `all_served`.
  explicit Client(std::size_t& all_served, const RequestEntry* entry = nullptr)
      : all_served_(all_served), entry_(entry) {}

  [[nodiscard]] const RequestEntry* claimant() const override { return entry_; }
  void on_claim_progress(const ClaimProgress& /*progress*/) override { ++told; }
  void on_lease(Lease got) override {
    served = true;
    ++all_served_;
    if (keeps) lease = std::move(got);
  }
  void on_claim_failed(Error error) override {
    std::fprintf(stderr, "admission_bench: %s\n", error.message.c_str());
    std::exit(EXIT_FAILURE);
  }

  bool keeps = false;
  bool served = false;
  std::uint64_t told = 0;
  Lease lease;
  std::unique_ptr<Claim> claim;

 private:
  std::size_t& all_served_;
  const RequestEntry* entry_;
};

// `fit`: as many of the models do at once.
class World {
 public:
  explicit World(std::size_t models, std::size_t fit) {
    world_.memory.domains = {
        {.id = "host", .device = {}, .total = 1'000'000 * kMiB, .budget = (100 * fit + 50) * kMiB}};
    for (std::size_t i = 0; i < models; ++i) {
      const std::string name = "model-" + std::to_string(i);
      world_.memory.needs[name] = {{.bytes = core::DomainBytes::in(core::kHostDomain, 100 * kMiB)}};
      models_.push_back(sim::make_model(name));
    }
    Limits limits;
    limits.waiters_per_model = limits.waiters_total = 4096;
    residency_ = std::make_unique<Residency>(world_.environment(), limits);
  }

  void ask(Client& client, std::size_t model) {
    client.claim = residency_->acquire(models_[model], RequestClass::kForeground,
                                       world_.clock.now() + minutes(9), client);
  }
  // Whose places are kept by `holders`, loaded if need be.
  void take_all_places(std::size_t model, std::vector<std::unique_ptr<Client>>& holders) {
    for (std::uint32_t i = 0; i < sim::WorkerScript().sequences; ++i) {
      Client& holder = *holders.emplace_back(std::make_unique<Client>(others_));
      holder.keeps = true;
      ask(holder, model);
      world_.clock.run_until([&] { return holder.served; }, minutes(1));
    }
  }
  [[nodiscard]] std::size_t& others() { return others_; }
  [[nodiscard]] sim::SimClock& clock() { return world_.clock; }
  [[nodiscard]] RequestBook& book() { return book_; }

 private:
  std::size_t others_ = 0;  // holders that were served
  sim::SimWorld world_;
  RequestBook book_{world_.clock, world_.events};
  std::vector<std::shared_ptr<const catalog::Model>> models_;
  std::unique_ptr<Residency> residency_;
};

// From acquire() until the place is there; `all_us`: until it was given back and all is settled.
// `waiting` others wait for memory meanwhile: where nobody else uses the model (not `busy`), each
// begin and end of its use has them planned anew.
void acquire_ready(benchmark::State& state) {
  const auto waiting = static_cast<std::size_t>(state.range(0));
  World world(1 + waiting, 1);
  std::vector<std::unique_ptr<Client>> holders;
  holders.push_back(std::make_unique<Client>(world.others()));
  holders.back()->keeps = state.range(1) != 0;
  world.ask(*holders.back(), 0);
  world.clock().advance(seconds(1));
  for (std::size_t i = 1; i <= waiting; ++i) {
    holders.push_back(std::make_unique<Client>(world.others()));
    world.ask(*holders.back(), i);
  }
  world.clock().settle();
  using Clock = std::chrono::steady_clock;
  std::chrono::duration<double> all{};
  for (auto _ : state) {
    const auto begin = Clock::now();
    Client client(world.others());
    world.ask(client, 0);
    const bool served = world.clock().run_until([&] { return client.served; }, seconds(0));
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - begin).count());
    if (!served) state.SkipWithError("it had to wait");
    world.clock().settle();
    all += Clock::now() - begin;
  }
  state.counters["all_us"] = all.count() * 1e6 / static_cast<double>(state.iterations());
}
BENCHMARK(acquire_ready)
    ->ArgNames({"waiting", "busy"})
    ->Args({0, 1})
    ->Args({1, 1})
    ->Args({10, 1})
    ->Args({0, 0})
    ->Args({1, 0})
    ->Args({10, 0})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

// So many wait, with their places taken; then those are given back, and all are served.
// `fit` of the models are resident at once: with fewer than there are, room is made for the others.
void drain(benchmark::State& state) {
  const auto waiters = static_cast<std::size_t>(state.range(0));
  const auto models = static_cast<std::size_t>(state.range(1));
  const auto fit = static_cast<std::size_t>(state.range(2));
  const auto tenants = static_cast<std::size_t>(state.range(3));
  std::uint64_t told = 0;
  for (auto _ : state) {
    World world(models, fit);
    std::vector<std::unique_ptr<Client>> holders;
    for (std::size_t i = 0; i < fit; ++i) world.take_all_places(i, holders);
    std::vector<std::shared_ptr<RequestEntry>> entries;
    for (std::size_t i = 0; i < tenants; ++i) {
      entries.push_back(world.book().arrive({.id = std::to_string(i),
                                             .model = "model",
                                             .tenant = "tenant-" + std::to_string(i),
                                             .protocol = "http",
                                             .cancel = nullptr}));
    }
    std::size_t served = 0;
    std::deque<Client> clients;
    for (std::size_t i = 0; i < waiters; ++i) {
      clients.emplace_back(served, entries[i % tenants].get());
    }
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < waiters; ++i) world.ask(clients[i], i % models);
    world.clock().settle();
    holders.clear();
    const bool done = world.clock().run_until([&] { return served == waiters; }, minutes(9));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    state.SetIterationTime(took.count());
    if (!done) state.SkipWithError("not all were served");
    for (const Client& client : clients) told += client.told;
    clients.clear();
  }
  const auto served = static_cast<double>(state.iterations()) * static_cast<double>(waiters);
  state.counters["us_each"] =
      benchmark::Counter(served / 1e6, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["told_each"] = static_cast<double>(told) / served;
}
BENCHMARK(drain)
    ->ArgNames({"waiters", "models", "fit", "tenants"})
    ->Args({100, 10, 10, 1})
    ->Args({300, 10, 10, 1})
    ->Args({1000, 10, 10, 1})
    ->Args({100, 10, 10, 8})
    ->Args({300, 10, 10, 8})
    ->Args({1000, 10, 10, 8})
    ->Args({100, 10, 5, 8})
    ->Args({300, 10, 5, 8})
    ->Args({1000, 10, 5, 8})
    ->Args({2048, 10, 5, 8})
    ->Args({128, 1, 1, 8})
    ->Args({512, 1, 1, 8})
    ->Args({2048, 1, 1, 8})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace berth::residency

BENCHMARK_MAIN();
