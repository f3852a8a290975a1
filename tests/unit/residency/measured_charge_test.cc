#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/residency/residency.h"
#include "tests/unit/residency/room_harness.h"

namespace berth::residency {
namespace {

using testing::HasSubstr;

// What is measured of loads, and what failed ones showed, as admission by bytes goes on with it.
class MeasuredChargeTest : public RoomTest {
 protected:
  MeasuredChargeTest() {
    world_.find_model = [this](const std::string& name) -> std::shared_ptr<const catalog::Model> {
      const auto at = models_.find(name);
      return at == models_.end() ? nullptr : at->second;
    };
    restart();
  }
  // These are in the catalogue, too.
  std::shared_ptr<catalog::Model> host_model(const std::string& name, std::uint64_t mib) {
    return models_[name] = RoomTest::host_model(name, mib);
  }
  std::shared_ptr<catalog::Model> device_model(const std::string& name, std::uint64_t mib) {
    return models_[name] = RoomTest::device_model(name, mib);
  }
  static MeasuredCharge host(std::uint64_t mib) {
    MeasuredCharge charge;
    charge.bytes = core::DomainBytes::in(core::kHostDomain, mib * kMiB);
    charge.terms.weights = {charge.bytes, core::Basis::kMeasured};
    return charge;
  }
  // Every load is measured so.
  void measure(std::uint64_t mib) {
    world_.meter.measure = [mib](const MeteredLoad& /*load*/) { return host(mib); };
  }
  [[nodiscard]] InstanceSnapshot instance(const std::string& model) const {
    for (InstanceSnapshot& one : residency_->instances()) {
      if (one.model == model) return std::move(one);
    }
    ADD_FAILURE() << "no instance of " << model;
    return {};
  }
  [[nodiscard]] Uuid id_of(const std::string& model) const {
    return Uuid::parse(instance(model).id);
  }
  // A load of it fails for want of memory; its failure stands then.
  void fail_load(const std::shared_ptr<catalog::Model>& model) {
    sim::WorkerScript& script = scripts_[model->name];
    script.fate = sim::Fate::kSaysLoadFailed;
    script.failure_class = "resource";
    script.reason = "out of memory";
    const auto client = request(model);
    run_until_answered(*client);
    EXPECT_TRUE(client->failed_with(Reason::kLoadFailed));
    world_.clock.advance(seconds(5));
    EXPECT_EQ(residency_->standing_failures().size(), 1U);
    script = {};
  }
  [[nodiscard]] core::FailureRecord record() const {
    EXPECT_EQ(world_.store.failure_records().size(), 1U);
    return world_.store.failure_records().begin()->second;
  }
  static const core::FailureMemory& domain(const core::FailureRecord& record,
                                           const std::string& name) {
    for (const core::FailureMemory& memory : record.memory) {
      if (memory.domain == name) return memory;
    }
    ADD_FAILURE() << "nothing is known of " << name;
    return record.memory.front();
  }
  // It is tried anew, with success.
  bool loads_again(const std::string& model) {
    const auto client = request(models_.at(model));
    run_until_answered(*client);
    return static_cast<bool>(client->lease);
  }

  std::map<std::string, std::shared_ptr<catalog::Model>> models_;
};

TEST_F(MeasuredChargeTest, M5_TheChargeOfWhatRunsFollowsWhatIsMeasured) {
  const auto a = host_model("a", 300);
  measure(450);
  resident(a);
  EXPECT_EQ(instance("a").charge, host(450).bytes);
  EXPECT_EQ(instance("a").plan.at.bytes[core::kHostDomain], 300 * kMiB);
  EXPECT_EQ(instance("a").measured, host(450).terms);
  residency_->recharge(id_of("a"), host(800));
  EXPECT_EQ(instance("a").charge, host(800).bytes);
  EXPECT_EQ(residency_->memory_now().entries.front().charge, host(800).bytes);
}

TEST_F(MeasuredChargeTest, M5_WhatNobodyMeasuredStaysAsItWasPredicted) {
  resident(host_model("a", 300));
  EXPECT_EQ(instance("a").charge, host(300).bytes);
  EXPECT_FALSE(instance("a").measured);
}

TEST_F(MeasuredChargeTest, M5_WhatGrewKeepsOthersOutAndWhatShrankLetsThemIn) {
  const auto user = served(host_model("a", 300));
  residency_->recharge(id_of("a"), host(900));
  const auto client = request(host_model("b", 400));
  world_.clock.advance(seconds(1));
  EXPECT_EQ(client->answers, 0);
  EXPECT_EQ(state_of("b"), "absent");
  residency_->recharge(id_of("a"), host(500));
  world_.clock.advance(seconds(1));
  EXPECT_TRUE(client->lease);
  EXPECT_EQ(world_.events.count("model.evicted"), 0U);
}

// What must come back is what was there at its stop.
TEST_F(MeasuredChargeTest, M10_WhatIsStoppedIsNotMeasuredAnyMore) {
  scripts_["a"].ignores_term = true;
  resident(host_model("a", 300));
  const Uuid id = id_of("a");
  residency_->unload("a", false, [](const Result<UnloadOutcome>& /*out*/) {});
  world_.clock.settle();
  residency_->recharge(id, host(900));
  EXPECT_EQ(instance("a").charge, host(300).bytes);
  world_.clock.advance(minutes(1));
  residency_->recharge(id, host(900));
  EXPECT_TRUE(residency_->memory_now().entries.empty());
  EXPECT_TRUE(world_.meter.loads().empty());
}

TEST_F(MeasuredChargeTest, M5_TheMeterIsToldWhereALoadWasPut) {
  resident(device_model("a", 300));
  ASSERT_EQ(world_.meter.loads().size(), 1U);
  const MeteredLoad& load = world_.meter.loads().begin()->second;
  EXPECT_EQ(load.model->name, "a");
  EXPECT_EQ(load.pid, instance("a").pid);
  EXPECT_EQ(load.plan, instance("a").plan);
  EXPECT_EQ(load.plan.at.placement.shares.size(), 1U);
  EXPECT_EQ(load.provenance.runtime, "simulated");
}

TEST_F(MeasuredChargeTest, L18_TheRecordSaysWhatItWasChargedAndWhatWasFree) {
  resident(device_model("other", 200));
  world_.meter.on_failed = [](core::FailureRecord& record) {
    ASSERT_EQ(record.memory.size(), 1U);
    record.memory.front().high_water = 7;
  };
  fail_load(device_model("a", 300));
  const core::FailureMemory gpu = domain(record(), "gpu");
  EXPECT_EQ(gpu.predicted_charge, 300 * kMiB);
  EXPECT_EQ(gpu.high_water, 7U);
  EXPECT_EQ(gpu.free_before, 7800 * kMiB);
  EXPECT_EQ(gpu.free_at_failure, 7800 * kMiB);
  const core::FailureMemory host = domain(record(), "host");
  EXPECT_FALSE(host.predicted_charge);
  EXPECT_EQ(host.free_at_failure, world_.free_memory);
}

TEST_F(MeasuredChargeTest, L19_L23_ABudgetThatMovedLifts) {
  fail_load(host_model("a", 300));
  const std::map<std::string, std::uint64_t> budgets = {{"host", 1000 * kMiB},
                                                        {"gpu", 1000 * kMiB}};
  EXPECT_EQ(record().provenance.budget, budgets);
  set_foreign(0, 100);
  EXPECT_EQ(residency_->standing_failures().size(), 1U);
  world_.memory.domains[0].budget = 1200 * kMiB;
  residency_->memory_changed();
  EXPECT_TRUE(residency_->standing_failures().empty());
  EXPECT_THAT(last("failure.lifted", "detail"), HasSubstr("the memory budget moved: host"));
  EXPECT_TRUE(loads_again("a"));
}

TEST_F(MeasuredChargeTest, L21_AChargeThatFellLifts) {
  fail_load(device_model("a", 900));
  world_.memory.needs["a"].front().bytes[kDevice] =
      501 * kMiB;  // less than the margin: 5 % of 8000
  EXPECT_FALSE(loads_again("a"));
  world_.memory.needs["a"].front().bytes[kDevice] = 500 * kMiB;
  EXPECT_TRUE(loads_again("a"));
  EXPECT_EQ(last("failure.lifted", "cause"), "memory");
  EXPECT_THAT(last("failure.lifted", "detail"), HasSubstr("it needs 500 MiB of gpu"));
}

TEST_F(MeasuredChargeTest, L21_RoomOnTheDeviceLifts) {
  resident(device_model("other", 600));
  fail_load(device_model("a", 300));
  EXPECT_FALSE(loads_again("a"));
  residency_->unload("other", false, [](const Result<UnloadOutcome>& /*out*/) {});
  world_.clock.advance(seconds(10));
  EXPECT_TRUE(loads_again("a"));
  EXPECT_THAT(last("failure.lifted", "detail"), HasSubstr("gpu has"));
}

}  // namespace
}  // namespace berth::residency
