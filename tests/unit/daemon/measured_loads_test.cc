#include "supervisor/measured_loads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/residency/memory_access.h"
#include "tests/simulation/sim_world.h"

namespace berth {
namespace {

constexpr std::uint64_t kMiB = 1ULL << 20U;
constexpr core::DomainIndex kHost = core::kHostDomain;
constexpr core::DomainIndex kGpu = 1;
constexpr pid_t kPid = 77;

core::Provenance provenance() {
  core::Provenance provenance;
  provenance.runtime = "b1";
  provenance.window = 4096;
  provenance.budget = {{"host", 7}};
  return provenance;
}

rpc::MemoryUse use(std::string domain, std::uint64_t weights, std::uint64_t kv,
                   std::uint64_t working, std::uint64_t mapped = 0) {
  return {std::move(domain), weights * kMiB, kv * kMiB, working * kMiB, mapped * kMiB};
}

class MeasuredLoadsTest : public testing::Test {
 protected:
  MeasuredLoadsTest() {
    table_.domains = {{.id = "host", .device = {}, .total = 8000 * kMiB},
                      {.id = "GPU-1", .device = "CUDA0", .total = 8000 * kMiB}};
    table_.by_device = {{"CUDA0", kGpu}, {"CUDA_Same", kGpu}, {"iGPU", kHost}};
    begin();
  }
  // The server starts.
  void begin() {
    measured_.emplace(MeasuredLoads::Parts{
        .clock = world_.clock,
        .store = world_.store,
        .events = world_.events,
        .table = [this]() -> const core::DomainTable& { return table_; },
        .on_charge =
            [this](const Uuid& instance, const residency::MeasuredCharge& charge) {
              charges_[instance] = charge.bytes;
            }});
    measured_->begin([this] { ++begun_; });
    world_.clock.settle();
  }
  // 1000 MiB of the host and 2000 of the device, each with 100 for the process.
  static residency::LaunchPlan plan() {
    residency::LaunchPlan plan;
    plan.at.placement.shares = {{kGpu, 32}};
    plan.terms.weights.bytes[kHost] = 900 * kMiB;
    plan.terms.overhead.bytes[kHost] = 100 * kMiB;
    plan.terms.weights.bytes[kGpu] = 1500 * kMiB;
    plan.terms.kv.bytes[kGpu] = 400 * kMiB;
    plan.terms.overhead.bytes[kGpu] = 100 * kMiB;
    plan.at.bytes = plan.terms.total();
    plan.window = 2048;
    return plan;
  }
  Uuid launch(const residency::LaunchPlan& plan, pid_t pid = kPid, bool command = false) {
    const auto model = sim::make_model("m");
    if (command) model->settings.kind = catalog::Kind::kCommand;
    const Uuid id = world_.ids.next();
    measured_->launched({model, id, pid, plan, provenance()});
    return id;
  }
  core::DomainBytes loaded(const Uuid& instance, std::vector<rpc::MemoryUse> memory) {
    rpc::WorkerReady ready;
    ready.memory = std::move(memory);
    const auto charge = measured_->loaded(instance, ready);
    EXPECT_TRUE(charge);
    return charge.value_or(residency::MeasuredCharge()).bytes;
  }
  [[nodiscard]] std::string key_of(const residency::LaunchPlan& plan) const {
    return measured_->key(provenance(), plan.window, plan.at.placement);
  }
  [[nodiscard]] const core::MeasuredLoad& found() {
    const core::MeasuredLoad* const found = measured_->find(key_of(plan()));
    EXPECT_NE(found, nullptr);
    return *found;
  }
  static core::FailureRecord failure(
      const Uuid& instance, core::FailureClass failure_class = core::FailureClass::kResource) {
    core::FailureRecord record;
    record.id = record.instance = instance;
    record.model = "m";
    record.failure_class = failure_class;
    return record;
  }

  sim::SimWorld world_;
  core::DomainTable table_;
  std::map<Uuid, core::DomainBytes> charges_;
  int begun_ = 0;
  std::optional<MeasuredLoads> measured_;
};

TEST_F(MeasuredLoadsTest, M5_WhatLibllamaReportsIsStoredBesideThePrediction) {
  const Uuid id = launch(plan());
  // Two of libllama's devices are one; what is nobody's is the host's.
  const auto charge =
      loaded(id, {use("host", 300, 10, 30, 300), use("CUDA_Host", 0, 0, 20), use("iGPU", 0, 0, 5),
                  use("CUDA0", 1400, 300, 40), use("CUDA_Same", 100, 100, 10)});
  ASSERT_NE(found().find("host"), nullptr);
  EXPECT_EQ(found().loads, 1U);
  EXPECT_EQ(found().find("host")->working, 55 * kMiB);
  EXPECT_EQ(found().find("host")->mapped, 300 * kMiB);
  EXPECT_EQ(found().find("GPU-1")->weights, 1500 * kMiB);
  EXPECT_EQ(found().find("GPU-1")->kv, 400 * kMiB);
  // What nobody measured stays as it was predicted: 100 MiB for each process.
  EXPECT_EQ(charge[kHost], (365 + 100) * kMiB);
  EXPECT_EQ(charge[kGpu], (1950 + 100) * kMiB);

  const store::MeasuredRecord& kept = world_.store.measured_records().at(key_of(plan()));
  EXPECT_EQ(kept.model, "m");
  EXPECT_EQ(kept.measured, found());
  ASSERT_EQ(kept.predicted.size(), 2U);
  EXPECT_EQ(kept.predicted[1].domain, "GPU-1");
  EXPECT_EQ(kept.predicted[1].charge, 2000 * kMiB);
  EXPECT_EQ(kept.predicted[1].overhead, 100 * kMiB);
}

TEST_F(MeasuredLoadsTest, M5_ALaterRunOfTheServerKnowsIt) {
  const Uuid id = launch(plan());
  loaded(id, {use("CUDA0", 1400, 300, 40)});
  const core::MeasuredLoad before = found();
  begin();
  EXPECT_EQ(begun_, 2);
  EXPECT_EQ(found(), before);
  // It is another load's with another window, file or placement; a budget changes nothing.
  core::Provenance other = provenance();
  other.budget.reset();
  EXPECT_NE(measured_->find(measured_->key(other, 2048, plan().at.placement)), nullptr);
  EXPECT_EQ(measured_->find(measured_->key(other, 4096, plan().at.placement)), nullptr);
  EXPECT_EQ(measured_->find(measured_->key(other, 2048, {})), nullptr);
  other.runtime = "b2";
  EXPECT_EQ(measured_->find(measured_->key(other, 2048, plan().at.placement)), nullptr);
}

TEST_F(MeasuredLoadsTest, M5_PredictedToActualOfTheLastLoad) {
  EXPECT_TRUE(measured_->ratios().empty());
  EXPECT_EQ(measured_->last_of("m"), nullptr);
  loaded(launch(plan()), {use("host", 400, 0, 0), use("CUDA0", 1400, 300, 100)});
  for (int run = 0; run < 2; ++run) {
    const auto ratios = measured_->ratios();
    ASSERT_EQ(ratios.size(), 2U);
    EXPECT_EQ(ratios[0].model, "m");
    EXPECT_EQ(ratios[0].domain, "host");
    EXPECT_DOUBLE_EQ(ratios[0].predicted_to_actual, 2.0);
    EXPECT_DOUBLE_EQ(ratios[1].predicted_to_actual, 2000.0 / 1900.0);
    ASSERT_NE(measured_->last_of("m"), nullptr);
    begin();
  }
}

TEST_F(MeasuredLoadsTest, M4_TheProcessesMaximumIsKept) {
  const Uuid id = launch(plan());
  measured_->seen(kPid, kGpu, 1000 * kMiB);  // while it loads
  loaded(id, {use("CUDA0", 1500, 400, 100)});
  EXPECT_EQ(found().find("GPU-1")->process, 1000 * kMiB);
  const int writes = world_.store.measured_writes;

  measured_->seen(kPid, kGpu, 2300 * kMiB);
  EXPECT_EQ(found().find("GPU-1")->process, 2300 * kMiB);
  EXPECT_EQ(charges_[id][kGpu], 2300 * kMiB);
  EXPECT_EQ(charges_[id][kHost], 1000 * kMiB);
  EXPECT_EQ(world_.store.measured_writes, writes + 1);
  // Small steps are written at the end.
  for (std::uint64_t i = 1; i < 9; ++i) measured_->seen(kPid, kGpu, 2300 * kMiB + i);
  measured_->seen(kPid, kGpu, 2000 * kMiB);
  measured_->seen(kPid + 1, kGpu, 9000 * kMiB);  // somebody else
  measured_->seen(kPid, 7, 9000 * kMiB);         // a domain that there is not
  EXPECT_EQ(world_.store.measured_writes, writes + 1);
  measured_->gone(id);
  EXPECT_EQ(world_.store.measured_writes, writes + 2);
  EXPECT_EQ(world_.store.measured_records().at(key_of(plan())).measured.find("GPU-1")->process,
            2300 * kMiB + 8);
  measured_->seen(kPid, kGpu, 5000 * kMiB);  // the pid is another process's by now
  EXPECT_EQ(found().find("GPU-1")->process, 2300 * kMiB + 8);
}

TEST_F(MeasuredLoadsTest, M5_TheHostsChargeNeverFallsBelowWhatIsNotMeasured) {
  const Uuid id = launch(plan());
  loaded(id, {use("host", 300, 0, 0)});
  measured_->seen(kPid, kHost, 310 * kMiB);
  EXPECT_FALSE(charges_.contains(id));  // 10 MiB beside its buffers: only those pages were touched
  measured_->seen(kPid, kHost, 450 * kMiB);
  EXPECT_EQ(charges_[id][kHost], 450 * kMiB);
}

TEST_F(MeasuredLoadsTest, M4_L27_ACommandIsMeasuredByItsProcesses) {
  residency::LaunchPlan nothing;  // it declares none
  const Uuid id = launch(nothing, kPid, true);
  EXPECT_TRUE(loaded(id, {}).empty());
  measured_->seen(kPid, kHost, 700 * kMiB);
  measured_->seen(kPid, kGpu, 3000 * kMiB);
  EXPECT_EQ(charges_[id][kHost], 700 * kMiB);
  EXPECT_EQ(charges_[id][kGpu], 3000 * kMiB);
  measured_->gone(id);

  begin();
  const core::MeasuredLoad* const known = measured_->find(key_of(nothing));
  ASSERT_NE(known, nullptr);
  const core::Charge next = core::with_measured({}, *known, table_.domains);
  EXPECT_EQ(next.total()[kHost], 700 * kMiB);
  EXPECT_EQ(next.total()[kGpu], 3000 * kMiB);
  EXPECT_EQ(next.overhead.basis, core::Basis::kMeasured);
}

TEST_F(MeasuredLoadsTest, M4_WhatIsDeclaredOnlyGrows) {
  residency::LaunchPlan declared;
  declared.terms.weights = {core::DomainBytes::in(kHost, 500 * kMiB), core::Basis::kDeclared};
  declared.at.bytes = declared.terms.total();
  const Uuid id = launch(declared, kPid, true);
  EXPECT_EQ(loaded(id, {})[kHost], 500 * kMiB);
  measured_->seen(kPid, kHost, 100 * kMiB);
  EXPECT_FALSE(charges_.contains(id));
  measured_->seen(kPid, kHost, 600 * kMiB);
  EXPECT_EQ(charges_[id][kHost], 600 * kMiB);
}

TEST_F(MeasuredLoadsTest, L21_AFailedLoadShowsWhatIsNeededAtLeast) {
  const Uuid id = launch(plan());
  measured_->seen(kPid, kGpu, 1800 * kMiB);
  measured_->seen(kPid, kHost, 50 * kMiB);
  core::FailureRecord record = failure(id);
  record.reason =
      "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 512.00 MiB on device 0: "
      "cudaMalloc failed: out of memory";
  measured_->failed(id, record);
  measured_->gone(id);
  EXPECT_EQ(record.failing_domain, "GPU-1");
  ASSERT_EQ(record.memory.size(), 2U);
  EXPECT_EQ(record.memory[1].high_water, 1800 * kMiB);
  EXPECT_EQ(record.memory[1].failing_allocation, 512 * kMiB);
  EXPECT_EQ(found().find("GPU-1")->at_least, 2312 * kMiB);
  EXPECT_EQ(found().find("host"), nullptr);
  // Also after a restart, until a load succeeds.
  begin();
  const core::Charge next = core::with_measured(plan().terms, found(), table_.domains);
  EXPECT_EQ(next.total()[kGpu], 2312 * kMiB);
  const Uuid again = launch(plan());
  EXPECT_EQ(loaded(again, {use("CUDA0", 1500, 400, 50)})[kGpu], 2050 * kMiB);
  EXPECT_FALSE(found().find("GPU-1")->at_least);
}

TEST_F(MeasuredLoadsTest, L21_OtherFailuresSayNothingOfMemory) {
  const Uuid id = launch(plan());
  measured_->seen(kPid, kGpu, 1800 * kMiB);
  core::FailureRecord crashed = failure(id, core::FailureClass::kCrash);
  measured_->failed(id, crashed);
  EXPECT_TRUE(crashed.memory.empty());
  EXPECT_EQ(measured_->find(key_of(plan())), nullptr);
  // What a program that is not ours says of sizes is not believed.
  const Uuid command = launch(plan(), kPid, true);
  core::FailureRecord said = failure(command);
  said.log_tail = {"failed to allocate buffer of size 99999999999999"};
  measured_->failed(command, said);
  EXPECT_EQ(measured_->find(key_of(plan())), nullptr);
  EXPECT_TRUE(world_.store.measured_records().empty());
  // An instance that nobody launched.
  core::FailureRecord unknown = failure(world_.ids.next());
  measured_->failed(unknown.instance, unknown);
  EXPECT_FALSE(measured_->loaded(unknown.instance, {}));
  measured_->gone(unknown.instance);
}

TEST_F(MeasuredLoadsTest, M5_RowsThatCannotBeReadAreSaid) {
  world_.store.unreadable_measured = 2;
  begin();
  ASSERT_NE(world_.events.last("server.degraded"), nullptr);
  EXPECT_THAT(sim::SimEvents::field(*world_.events.last("server.degraded"), "problem"),
              testing::HasSubstr("2 records of what loads took cannot be read"));
}

TEST_F(MeasuredLoadsTest, M5_StoredFiguresThatCannotBeTrueAreRefused) {
  loaded(launch(plan()), {use("CUDA0", 1500, 400, 50)});
  store::MeasuredRecord edited = world_.store.measured_records().at(key_of(plan()));
  edited.measured.domains[0].weights = 1ULL << 60U;
  world_.store.put_measured(edited);
  begin();
  EXPECT_EQ(measured_->find(key_of(plan())), nullptr);
  EXPECT_EQ(measured_->last_of("m"), nullptr);
  ASSERT_EQ(world_.events.count("measurement.refused"), 1U);
  EXPECT_EQ(sim::SimEvents::field(*world_.events.last("measurement.refused"), "model"), "m");
  EXPECT_THAT(sim::SimEvents::field(*world_.events.last("measurement.refused"), "problem"),
              testing::HasSubstr("of GPU-1"));
  // The next load is measured again, and its figures count.
  loaded(launch(plan()), {use("CUDA0", 1500, 400, 50)});
  EXPECT_EQ(found().find("GPU-1")->weights, 1500 * kMiB);
  begin();
  EXPECT_NE(measured_->find(key_of(plan())), nullptr);
  EXPECT_EQ(world_.events.count("measurement.refused"), 1U);
}

TEST_F(MeasuredLoadsTest, M5_StoredFiguresAreJudgedOnceTheDomainsAreKnown) {
  loaded(launch(plan()), {use("CUDA0", 1500, 400, 50)});
  store::MeasuredRecord edited = world_.store.measured_records().at(key_of(plan()));
  edited.measured.domains[0].process = 9000 * kMiB;
  world_.store.put_measured(edited);
  const std::string key = key_of(plan());
  const core::DomainTable table = std::exchange(table_, {});
  begin();
  EXPECT_NE(measured_->find(key), nullptr);
  table_ = table;
  EXPECT_TRUE(measured_->ratios().empty());
  EXPECT_EQ(world_.events.count("measurement.refused"), 1U);
}

TEST_F(MeasuredLoadsTest, M5_AStoreThatCannotBeReadIsAskedAgain) {
  loaded(launch(plan()), {use("CUDA0", 1500, 400, 50)});
  world_.store.fail_reads = true;
  begin();
  EXPECT_EQ(begun_, 2);
  EXPECT_EQ(world_.events.count("server.degraded"), 1U);
  EXPECT_EQ(measured_->find(key_of(plan())), nullptr);
  world_.clock.advance(MeasuredLoads::kReadAgain);
  EXPECT_EQ(world_.events.count("server.degraded"), 1U);
  // What is measured meanwhile counts, and not what is older.
  loaded(launch(plan()), {use("CUDA0", 1700, 400, 50)});
  world_.store.fail_reads = false;
  world_.clock.advance(MeasuredLoads::kReadAgain);
  EXPECT_EQ(found().find("GPU-1")->weights, 1700 * kMiB);
  EXPECT_EQ(begun_, 2);
}

TEST_F(MeasuredLoadsTest, M5_TheOldestGoesWhereThereAreTooMany) {
  for (std::uint32_t i = 0; i < store::Store::kMeasuredKept + 3; ++i) {
    residency::LaunchPlan one = plan();
    one.window = 256 + i;
    const Uuid id = launch(one);
    loaded(id, {use("CUDA0", 10, 1, 1)});
    measured_->gone(id);
    world_.clock.advance(std::chrono::milliseconds(1));
  }
  residency::LaunchPlan one = plan();
  one.window = 258;
  EXPECT_EQ(measured_->find(key_of(one)), nullptr);
  one.window = 259;
  EXPECT_NE(measured_->find(key_of(one)), nullptr);
}

}  // namespace
}  // namespace berth
