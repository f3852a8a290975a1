#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "supervisor/core/memory/decision.h"
#include "tests/unit/residency/room_harness.h"

// What a dry run says is what is done (M7).
namespace berth::residency {
namespace {

using std::chrono::seconds;

class DryRunTest : public RoomTest {
 protected:
  // The instances that were evicted since `before` events.
  [[nodiscard]] std::vector<std::string> evicted_since(std::size_t before) const {
    std::vector<std::string> all;
    for (const Event& event : world_.events.all()) {
      if (event.name == "model.evicted") all.push_back(sim::SimEvents::field(event, "instance"));
    }
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(before));
    return all;
  }

  static std::vector<std::string> victims_of(const core::Decision& decision) {
    std::vector<std::string> all;
    if (const auto* const evict = std::get_if<core::Evict>(&decision)) {
      for (const core::Victim& victim : evict->victims) all.push_back(victim.id.to_string());
    }
    return all;
  }

  // Nothing is left of earlier models.
  void clear() {
    for (const InstanceSnapshot& instance : residency_->instances()) {
      residency_->unpin(instance.model);
      residency_->unload(instance.model, true, [](const Result<UnloadOutcome>&) {});
    }
    world_.clock.advance(seconds(30));
    ASSERT_TRUE(residency_->memory_now().entries.empty());
  }

  // Asks for that model, and compares what is done with what was said.
  void compare(const std::shared_ptr<catalog::Model>& model, const std::string& what) {
    const PlanReport said = residency_->plan(*model);
    const std::size_t evictions = world_.events.count("model.evicted");
    const auto asked = request(model);
    world_.clock.settle();
    const std::string name(core::decision_name(said.decision));
    EXPECT_EQ(evicted_since(evictions), victims_of(said.decision)) << what << " " << name;
    EXPECT_EQ(state_of(model->name) != "absent", name == "fits") << what << " " << name;
    EXPECT_EQ(asked->error.has_value(), name == "refuse") << what;
    if (said.refusal && asked->error) {
      EXPECT_EQ(asked->error->reason, said.refusal->reason) << what;
      EXPECT_EQ(asked->error->message, said.refusal->message) << what;
    }
    if (const auto* const park = std::get_if<core::Park>(&said.decision)) {
      const std::vector<RoomWait> waits = residency_->room_waits();
      ASSERT_EQ(waits.size(), 1U) << what;
      EXPECT_EQ(waits[0].what, core::park_name(park->what)) << what;
      EXPECT_EQ(waits[0].missing, park->missing) << what;
    }
  }
};

TEST_F(DryRunTest, M7_ADryRunIsWhatProductionDoes) {
  std::mt19937 random(7);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same every time
  const auto below = [&](std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(0, most - 1)(random);
  };
  for (int round = 0; round < 60; ++round) {
    clear();
    std::vector<std::unique_ptr<TestClient>> kept;
    for (int i = 0; i < 4; ++i) {
      const std::string name = "m" + std::to_string(round) + "-" + std::to_string(i);
      const auto model = host_model(name, 100 + 50 * below(10));
      if (residency_->plan(*model).decision.index() != 0) continue;
      if (below(4) == 0) static_cast<void>(residency_->pin(model));
      auto used = served(model);
      if (below(4) == 0) {
        kept.push_back(std::move(used));
      } else {
        used->lease = {};
      }
      world_.clock.advance(seconds(below(20)));
    }
    compare(host_model("new" + std::to_string(round), 100 + 50 * below(24)),
            "round " + std::to_string(round));
  }
}

TEST_F(DryRunTest, M7_ADryRunWithOtherSettingsCountsItsOwnInstanceAsGone) {
  const auto a = host_model("a", 600);
  resident(a);
  EXPECT_EQ(core::decision_name(residency_->plan(*a, true).decision), "fits");
  ASSERT_EQ(residency_->memory_now().entries.size(), 1U) << "only in the plan";
}

TEST_F(DryRunTest, M9_WhoWaitsIsAsOldInADryRunAsItIs) {
  const auto a = host_model("a", 600);
  const auto b = host_model("b", 600);
  const auto user = served(a);
  const auto waits = request(b);
  world_.clock.advance(seconds(3));
  const PlanReport said = residency_->plan(*b);
  EXPECT_EQ(said.snapshot.now - said.need.since, seconds(3));
  ASSERT_EQ(residency_->room_waits().size(), 1U);
  EXPECT_EQ(residency_->room_waits()[0].model, "b");
}

}  // namespace
}  // namespace berth::residency
