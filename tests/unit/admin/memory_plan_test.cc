#include "supervisor/admin/memory_plan.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "supervisor/admin/failures.h"
#include "supervisor/admin/load_operation.h"
#include "supervisor/admin/memory_state.h"
#include "supervisor/admin/state.h"
#include "tests/unit/admin/harness.h"

namespace berth::admin {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t kMiB = 1ULL << 20U;

// 1,000 MiB for models.
class MemoryPlanTest : public AdminTest {
 protected:
  MemoryPlanTest()
      : AdminTest({{.id = "host",
                    .device = {},
                    .total = 8000 * kMiB,
                    .budget = 1000 * kMiB,
                    .foreign = 200 * kMiB}}) {
    need("demo", 600);
    need("other/one", 600);
  }

  void need(const std::string& model, std::uint64_t mib) {
    core::PlacementOption option;
    option.bytes = core::DomainBytes::in(core::kHostDomain, mib * kMiB);
    world_.memory.needs[model] = {option};
  }
  Result<v1::ModelPlan> plan(PlanAsk ask, const core::Caller& caller = admin()) {
    std::optional<Result<v1::ModelPlan>> got;
    ask.caller = caller;
    plan_model(state_, std::move(ask), [&](Result<v1::ModelPlan> plan) { got = std::move(plan); });
    world_.clock.settle();
    return got.value_or(fail(Reason::kInternal, "no answer"));
  }
  Result<v1::PinModelResponse> pin(const std::string& model) {
    std::optional<Result<v1::PinModelResponse>> got;
    pin_model(state_, model, admin(),
              [&](Result<v1::PinModelResponse> it) { got = std::move(it); });
    world_.clock.settle();
    return got.value_or(fail(Reason::kInternal, "no answer"));
  }
  Result<v1::UnpinModelResponse> unpin(const std::string& model) {
    std::optional<Result<v1::UnpinModelResponse>> got;
    unpin_model(state_, model, admin(),
                [&](Result<v1::UnpinModelResponse> it) { got = std::move(it); });
    world_.clock.settle();
    return got.value_or(fail(Reason::kInternal, "no answer"));
  }
  v1::Memory memory() {
    std::optional<Result<v1::Memory>> got;
    get_memory(state_, admin(), [&](Result<v1::Memory> it) { got = std::move(it); });
    world_.clock.settle();
    return **got;
  }
  v1::State state(const core::Caller& caller) {
    v1::State got;
    get_state(state_, caller, [&](v1::State it) { got = std::move(it); });
    world_.clock.settle();
    return got;
  }
};

TEST_F(MemoryPlanTest, M7_APlanSaysWhatFitsAndWhatIsLeft) {
  const auto fits = plan({.model = "demo"});
  ASSERT_TRUE(fits) << fits.error().message;
  EXPECT_EQ(fits->decision(), "fits");
  EXPECT_THAT(fits->sentence(), HasSubstr("600 MiB of host"));
  ASSERT_EQ(fits->domains_size(), 1);
  EXPECT_EQ(fits->domains(0).needed_bytes(), 600 * kMiB);
  EXPECT_EQ(fits->domains(0).limit_bytes(), 1000 * kMiB);
  EXPECT_EQ(fits->domains(0).available_bytes(), 1000 * kMiB);
  EXPECT_EQ(fits->domains(0).missing_bytes(), 0U);
  EXPECT_FALSE(fits->uncounted());
}

TEST_F(MemoryPlanTest, M7_APlanNamesTheVictimsThatProductionTakes) {
  served("r-1")->finish({});
  world_.clock.advance(1min);
  const auto evicts = plan({.model = "other/one"});
  ASSERT_TRUE(evicts);
  EXPECT_EQ(evicts->decision(), "evict");
  ASSERT_EQ(evicts->victims_size(), 1);
  EXPECT_EQ(evicts->victims(0).model(), "demo");
  EXPECT_EQ(evicts->victims(0).kind(), "ready");
  EXPECT_EQ(evicts->victims(0).charge(0).bytes(), 600 * kMiB);
  EXPECT_EQ(evicts->domains(0).available_bytes(), 400 * kMiB);
  EXPECT_EQ(evicts->domains(0).missing_bytes(), 200 * kMiB);
  EXPECT_EQ(residency_.state_of("demo"), "ready") << "nothing is done";
  const auto other = ask("r-2", "uid:1", "other/one");
  world_.clock.settle();
  const Event* const evicted = world_.events.last("model.evicted");
  ASSERT_NE(evicted, nullptr);
  EXPECT_EQ(sim::SimEvents::field(*evicted, "instance"), evicts->victims(0).instance_id());
}

TEST_F(MemoryPlanTest, M7_TheTableMissesWhatTheSentenceSays) {
  served("r-1")->finish({});
  world_.clock.advance(1min);
  world_.memory.domains[0].budget = 500 * kMiB;  // less than is charged
  need("other/one", 450);
  const auto evicts = plan({.model = "other/one"});
  ASSERT_TRUE(evicts);
  EXPECT_EQ(evicts->decision(), "evict");
  EXPECT_THAT(evicts->sentence(), HasSubstr("550 MiB of host are missing"));
  EXPECT_EQ(evicts->domains(0).available_bytes(), 0U);
  EXPECT_EQ(evicts->domains(0).missing_bytes(), 550 * kMiB);
  need("other/one", 700);
  const auto refused = plan({.model = "other/one"});
  EXPECT_EQ(refused->domains(0).missing_bytes(), 800 * kMiB);
  EXPECT_EQ(refused->domains(0).deficit_bytes(), 200 * kMiB);
}

TEST_F(MemoryPlanTest, M7_AModelThatIsThereNeedsNothing) {
  const auto request = served("r-1");
  const auto there = plan({.model = "demo"});
  ASSERT_TRUE(there);
  EXPECT_EQ(there->decision(), "resident");
  EXPECT_EQ(there->domains(0).needed_bytes(), 600 * kMiB);
  EXPECT_EQ(there->domains(0).available_bytes(), 1000 * kMiB);
  const auto anew = plan({.model = "demo", .context = 8192});
  ASSERT_TRUE(anew);
  EXPECT_EQ(anew->decision(), "fits") << "as if its own instance were gone";
}

TEST_F(MemoryPlanTest, M14_ARefusalHasAllItsNumbersAndWhatWouldFit) {
  need("demo", 1500);
  world_.memory.would_fit = WouldFit{8192, 2};
  const auto refused = plan({.model = "demo"});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->decision(), "refuse");
  EXPECT_EQ(refused->refusal(), "never_fits");
  EXPECT_EQ(refused->domains(0).needed_bytes(), 1500 * kMiB);
  EXPECT_EQ(refused->domains(0).limit_bytes(), 1000 * kMiB);
  EXPECT_EQ(refused->domains(0).deficit_bytes(), 500 * kMiB);
  EXPECT_EQ(refused->would_fit().context(), 8192U);
  const auto client = ask("r-1");
  world_.clock.settle();
  const std::vector<residency::RequestRecord> ended = requests_.ended(std::nullopt);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].reason, "insufficient_memory");
  EXPECT_EQ(refused->error().reason(), "insufficient_memory");
}

TEST_F(MemoryPlanTest, M7_WhatIsWrongWithAQuestionIsTold) {
  EXPECT_EQ(plan({.model = "zebra"}).error().reason, Reason::kUnknownModel);
  EXPECT_EQ(plan({.model = "demo", .context = 3}).error().extras->param, "context");
  EXPECT_EQ(plan({.model = "demo", .sequences = 5000}).error().extras->param, "sequences");
  EXPECT_EQ(plan({.model = "demo"}, client()).error().reason, Reason::kPermissionDenied);
}

TEST_F(MemoryPlanTest, L25_M7_APlanOfWhatCannotBeLoadedIsWhatARequestIsTold) {
  broken_ = {"other/one"};
  EXPECT_TRUE(plan({.model = "demo"}));
  const auto fits = plan({.model = "other/one"});
  ASSERT_FALSE(fits) << "no load survives that";
  EXPECT_EQ(fits.error().reason, Reason::kLoadFailed);
  EXPECT_THAT(fits.error().message, HasSubstr("other/one cannot be loaded: "));
  need("other/one", 2000);
  EXPECT_EQ(plan({.model = "other/one"})->refusal(), "never_fits") << "as a request is told";
  need("other/one", 600);
  const auto request = served("r-1");
  EXPECT_FALSE(plan({.model = "other/one"})) << "it waits, and its files are looked at first";
  broken_ = {"demo"};
  const auto there = plan({.model = "demo"});
  ASSERT_TRUE(there) << "who asks is served";
  EXPECT_EQ(there->decision(), "resident");
}

TEST_F(MemoryPlanTest, M16_ARefusedPlanTellsWhoIsPinnedByTheConfiguration) {
  world_.configured_pins = {*catalog_->find("demo")};
  residency_.catalog_changed();
  const auto request = served("r-1");
  const auto refused = plan({.model = "other/one"});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->refusal(), "pinned");
  EXPECT_THAT(refused->blockers(), ElementsAre("demo"));
  EXPECT_THAT(refused->pinned_by_configuration(), ElementsAre("demo"));
  world_.configured_pins.clear();
  residency_.catalog_changed();
  ASSERT_TRUE(pin("demo"));
  EXPECT_THAT(plan({.model = "other/one"})->pinned_by_configuration(), IsEmpty());
}

TEST_F(MemoryPlanTest, M16_APinThatDoesNotFitIsRefusedWithItsNumbers) {
  const auto first = pin("demo");
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_FALSE(first->was_pinned());
  EXPECT_FALSE(first->resident());
  EXPECT_TRUE(pin("demo")->was_pinned());
  const auto second = pin("other/one");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason, Reason::kNoRoom);
  ASSERT_TRUE(second.error().extras->memory);
  EXPECT_EQ(second.error().extras->memory->needed_bytes, 600 * kMiB);
  EXPECT_EQ(second.error().extras->memory->deficit_bytes, 200 * kMiB);
  EXPECT_TRUE(unpin("demo")->was_pinned());
  EXPECT_FALSE(unpin("demo")->was_pinned());
  EXPECT_TRUE(pin("other/one"));
  EXPECT_EQ(pin("zebra").error().reason, Reason::kUnknownModel);
  EXPECT_EQ(unpin("zebra").error().reason, Reason::kUnknownModel);
}

TEST_F(MemoryPlanTest, M17_AModelWhoseDeviceIsNotThereIsShownWithThat) {
  world_.memory.device_problems["demo"] = "Its device CUDA7 is not there.";
  const auto explained = [this](const std::string& model) {
    std::optional<Result<v1::ModelReport>> got;
    explain_model(state_, model, admin(), [&](auto told) { got = std::move(told); });
    world_.clock.settle();
    return got && *got ? (*got)->problem() : "no answer";
  };
  EXPECT_EQ(explained("demo"), "Its device CUDA7 is not there.");
  EXPECT_EQ(explained("other/one"), "");
  const auto shown = [this](const core::Caller& caller) {
    const v1::State now = state(caller);
    EXPECT_EQ(now.models(1).problem(), "");
    return now.models(0).problem();
  };
  EXPECT_EQ(shown(admin()), "Its device CUDA7 is not there.");
  EXPECT_EQ(shown(client()), "The model cannot be used.");
  const auto user = served("r-1");
  EXPECT_EQ(shown(admin()), "") << "it runs";
  world_.memory.device_problems.clear();
  EXPECT_EQ(explained("demo"), "");
}

TEST_F(MemoryPlanTest, M3_MemoryShowsDomainsChargesAndWhoWaits) {
  const auto user = served("r-1");
  ASSERT_TRUE(pin("demo"));
  const auto waits = ask("r-2", "uid:1", "other/one");
  world_.clock.settle();
  const v1::Memory now = memory();
  EXPECT_TRUE(now.counted());
  ASSERT_EQ(now.domains_size(), 1);
  EXPECT_EQ(now.domains(0).budget_bytes(), 1000 * kMiB);
  EXPECT_EQ(now.domains(0).foreign_bytes(), 200 * kMiB);
  EXPECT_EQ(now.domains(0).charged_bytes(), 600 * kMiB);
  EXPECT_EQ(now.domains(0).available_bytes(), 400 * kMiB);
  ASSERT_EQ(now.instances_size(), 1);
  EXPECT_EQ(now.instances(0).model(), "demo");
  EXPECT_EQ(now.instances(0).state(), "busy") << "as everywhere else";
  EXPECT_EQ(now.instances(0).clients(), 1U);
  EXPECT_TRUE(now.instances(0).pinned());
  EXPECT_EQ(now.instances(0).charge(0).bytes(), 600 * kMiB);
  EXPECT_FALSE(now.has_pressure());
}

TEST_F(MemoryPlanTest, M4_ALoadOfAModelThatIsThereTellsItsCharge) {
  struct Loader : LoadListener {
    void on_load_lifted(const core::FailureRecord& /*record*/) override {}
    void on_load_progress(const residency::ClaimProgress& /*progress*/) override {}
    void on_load_done(const std::optional<v1::Instance>& instance) override { ready = instance; }
    void on_load_failed(const Error& /*error*/) override {}
    std::optional<v1::Instance> ready;
  };
  served("r-1")->finish({});
  const auto loader = std::make_shared<Loader>();
  LoadAsk ask{.model = "demo", .caller = admin()};
  ask.deadline = world_.clock.now() + 1h;
  const auto operation = LoadOperation::start(state_, std::move(ask), loader);
  world_.clock.settle();
  ASSERT_TRUE(loader->ready);
  ASSERT_EQ(loader->ready->charge_size(), 1);
  EXPECT_EQ(loader->ready->charge(0).bytes(), 600 * kMiB);

  std::optional<v1::ModelReport> why;
  explain_model(state_, "demo", admin(), [&](Result<v1::ModelReport> report) { why = *report; });
  world_.clock.settle();
  ASSERT_TRUE(why);
  EXPECT_EQ(why->instance().charge_size(), 1);
}

TEST_F(MemoryPlanTest, M9_WhoWaitsForMemoryIsShownWithItsHold) {
  const auto user = served("r-1");
  const auto waits = ask("r-2", "uid:1", "other/one");
  world_.clock.advance(1s);
  const v1::Memory now = memory();
  ASSERT_EQ(now.waiting_size(), 1);
  EXPECT_EQ(now.waiting(0).model(), "other/one");
  EXPECT_EQ(now.waiting(0).waits_for(), "clients");
  EXPECT_EQ(now.waiting(0).missing(0).bytes(), 200 * kMiB);
  EXPECT_EQ(state(admin()).models(1).waits_for(), "clients");
}

TEST_F(MemoryPlanTest, I11_AClientSeesNeitherBudgetsNorCharges) {
  const auto user = served("r-1");
  ASSERT_TRUE(pin("demo"));
  const v1::State all = state(admin());
  EXPECT_EQ(all.domains(0).limit_bytes(), 1000 * kMiB);
  EXPECT_EQ(all.models(0).instance().charge(0).bytes(), 600 * kMiB);
  EXPECT_TRUE(all.models(0).pinned());
  EXPECT_TRUE(all.models(0).instance().pinned());
  const v1::State cut = state(client());
  EXPECT_EQ(cut.domains(0).available_bytes(), 400 * kMiB);
  EXPECT_FALSE(cut.domains(0).has_limit_bytes());
  EXPECT_FALSE(cut.domains(0).has_foreign_bytes());
  EXPECT_EQ(cut.models(0).instance().charge_size(), 0);
}

class UncountedTest : public AdminTest {};

TEST_F(UncountedTest, WithoutDomainsThePlanSaysThatNothingIsCounted) {
  std::optional<Result<v1::ModelPlan>> got;
  plan_model(state_, {.model = "demo", .caller = admin()},
             [&](Result<v1::ModelPlan> plan) { got = std::move(plan); });
  world_.clock.settle();
  ASSERT_TRUE(got && *got);
  EXPECT_TRUE((*got)->uncounted());
  EXPECT_EQ((*got)->decision(), "fits");
  std::optional<Result<v1::Memory>> memory;
  get_memory(state_, admin(), [&](Result<v1::Memory> it) { memory = std::move(it); });
  world_.clock.settle();
  ASSERT_TRUE(memory && *memory);
  EXPECT_FALSE((*memory)->counted());
  EXPECT_EQ((*memory)->domains(0).available_bytes(), 32000U);
}

}  // namespace
}  // namespace berth::admin
