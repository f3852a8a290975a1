#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/cli/doctor/memory.h"
#include "supervisor/cli/format/memory_text.h"
#include "tests/unit/cli/fake_daemon.h"
#include "tests/unit/cli/test_program.h"

namespace berth::cli {
namespace {

using test::FakeDaemon;
using test::TestProgram;

constexpr std::uint64_t kMiB = 1ULL << 20U;

class MemoryVerbsTest : public testing::Test {
 protected:
  MemoryVerbsTest() { program.variables["BERTH_ENDPOINT"] = daemon.endpoint(); }
  [[nodiscard]] bool prints(const std::string& text) const {
    return program.out.text.find(text) != std::string::npos;
  }
  [[nodiscard]] bool tells(const std::string& text) const {
    return program.err.text.find(text) != std::string::npos;
  }

  FakeDaemon daemon;
  TestProgram program;
};

v1::DomainPlan domain_plan(std::uint64_t needed, std::uint64_t available) {
  v1::DomainPlan plan;
  plan.set_domain("host");
  plan.set_needed_bytes(needed);
  plan.set_limit_bytes(1000 * kMiB);
  plan.set_available_bytes(available);
  plan.set_missing_bytes(needed > available ? needed - available : 0);
  v1::DomainCharge& charge = *plan.mutable_charge();
  charge.set_domain("host");
  charge.set_bytes(needed);
  charge.mutable_weights()->set_bytes(needed / 2);
  charge.mutable_weights()->set_basis("measured");
  charge.mutable_kv()->set_bytes(needed / 4);
  charge.mutable_kv()->set_basis("measured");
  charge.mutable_overhead()->set_bytes(needed / 4);
  charge.mutable_overhead()->set_basis("estimated");
  charge.set_error_bytes(16 * kMiB);
  return plan;
}

TEST_F(MemoryVerbsTest, M7_APlanTellsDecisionWindowTermsAndVictims) {
  daemon.plan = [](grpc::ServerContext&, const v1::PlanModelRequest& request,
                   v1::ModelPlan& reply) {
    EXPECT_EQ(request.model(), "demo");
    EXPECT_FALSE(request.has_context());
    reply.set_model("demo");
    reply.set_decision("evict");
    reply.set_sentence("demo takes 600 MiB of host, where 200 MiB are missing: other is stopped.");
    reply.set_window(8192);
    reply.set_window_bound("auto_share");
    reply.set_sequences(4);
    *reply.add_domains() = domain_plan(600 * kMiB, 400 * kMiB);
    v1::PlanVictim& victim = *reply.add_victims();
    victim.set_model("other");
    victim.set_kind("ready");
    victim.set_cost_seconds(2.5);
    v1::DomainAmount& gives = *victim.add_charge();
    gives.set_domain("host");
    gives.set_bytes(600 * kMiB);
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"plan", "demo"}), ExitCode::kOk) << program.err.text;
  EXPECT_TRUE(prints("other is stopped.\n")) << program.out.text;
  EXPECT_TRUE(prints("window: 8192 tokens, bound by memory.auto_share"));
  EXPECT_TRUE(prints("weights, KV measured; overhead estimated ± 16.0 MiB")) << program.out.text;
  EXPECT_TRUE(prints("200 MiB"));
  EXPECT_TRUE(prints("2.5 s")) << program.out.text;
}

TEST_F(MemoryVerbsTest, M14_ARefusedPlanEndsWithOneAndSaysWhatWouldFit) {
  daemon.plan = [](grpc::ServerContext&, const v1::PlanModelRequest& request,
                   v1::ModelPlan& reply) {
    EXPECT_EQ(request.context(), 65536U);
    EXPECT_EQ(request.sequences(), 2U);
    reply.set_model("demo");
    reply.set_decision("refuse");
    reply.set_refusal("never_fits");
    reply.set_sentence("demo needs 2 GiB of host, which is 1 GiB more than models may ever have.");
    *reply.add_domains() = domain_plan(2000 * kMiB, 400 * kMiB);
    reply.mutable_domains(0)->set_deficit_bytes(1000 * kMiB);
    reply.mutable_would_fit()->set_context(8192);
    reply.mutable_would_fit()->set_sequences(4);
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"plan", "demo", "--context", "65536", "--sequences", "2"}), ExitCode::kNo);
  EXPECT_TRUE(tells("more than models may ever have")) << program.err.text;
  EXPECT_FALSE(prints("1.6 GiB")) << "the sentence says 1 GiB";
  EXPECT_TRUE(tells("berth plan demo --context 8192 --sequences 4")) << program.err.text;
  ASSERT_EQ(program.run({"plan", "demo", "--context", "65536", "--sequences", "2", "--json"}),
            ExitCode::kNo);
  EXPECT_EQ(boost::json::parse(program.out.text).at("refusal").as_string(), "never_fits");
}

TEST_F(MemoryVerbsTest, M16_ARefusedPlanSaysWhosePinsAreInTheWay) {
  daemon.plan = [](grpc::ServerContext&, const v1::PlanModelRequest&, v1::ModelPlan& reply) {
    reply.set_model("demo");
    reply.set_decision("refuse");
    reply.set_refusal("pinned");
    reply.set_sentence("demo needs 2 GiB of host.");
    reply.add_blockers("fixed");
    reply.add_blockers("held");
    reply.add_pinned_by_configuration("fixed");
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"plan", "demo"}), ExitCode::kNo);
  EXPECT_TRUE(tells("'berth unpin held' lets it go")) << program.err.text;
  EXPECT_FALSE(tells("berth unpin fixed"));
  EXPECT_TRUE(tells("the configuration pins fixed"));
}

TEST_F(MemoryVerbsTest, M7_APlanThatAFailureStandsAgainstEndsWithOne) {
  std::string decision = "fits";
  daemon.plan = [&](grpc::ServerContext&, const v1::PlanModelRequest&, v1::ModelPlan& reply) {
    reply.set_model("demo");
    reply.set_decision(decision);
    reply.set_sentence("demo fits.");
    reply.mutable_failure()->set_class_("corrupt_file");
    return grpc::Status::OK;
  };
  EXPECT_EQ(program.run({"plan", "demo"}), ExitCode::kNo);
  EXPECT_TRUE(prints("demo fits.\n")) << program.out.text;
  EXPECT_TRUE(tells("a failure stands against demo (corrupt_file)")) << program.err.text;
  EXPECT_TRUE(tells("berth why demo")) << program.err.text;
  decision = "park";
  EXPECT_EQ(program.run({"plan", "demo", "--json"}), ExitCode::kNo);
  decision = "resident";
  EXPECT_EQ(program.run({"plan", "demo"}), ExitCode::kOk) << program.err.text;
}

TEST_F(MemoryVerbsTest, M7_APlanThatWaitsIsNoRefusal) {
  daemon.plan = [](grpc::ServerContext&, const v1::PlanModelRequest&, v1::ModelPlan& reply) {
    reply.set_decision("park");
    return grpc::Status::OK;
  };
  EXPECT_EQ(program.run({"plan", "demo"}), ExitCode::kOk) << program.err.text;
}

TEST_F(MemoryVerbsTest, M7_APlanOfNonsenseIsWrongUsage) {
  EXPECT_EQ(program.run({"plan"}), ExitCode::kUsage);
  EXPECT_EQ(program.run({"plan", "demo", "--context", "3"}), ExitCode::kUsage);
  EXPECT_EQ(program.run({"plan", "demo", "--sequences", "0"}), ExitCode::kUsage);
}

v1::DomainState host() {
  v1::DomainState host;
  host.set_id("host");
  host.set_total_bytes(2000 * kMiB);
  host.set_budget_bytes(1200 * kMiB);
  host.set_limit_bytes(1200 * kMiB);
  host.set_foreign_bytes(200 * kMiB);
  host.set_charged_bytes(600 * kMiB);
  host.mutable_charged()->set_weights_bytes(400 * kMiB);
  host.mutable_charged()->set_kv_bytes(200 * kMiB);
  host.set_available_bytes(600 * kMiB);
  return host;
}

TEST_F(MemoryVerbsTest, M3_MemoryShowsABarForEachDomainAndWhoHasIt) {
  daemon.memory = [](grpc::ServerContext&, const v1::GetMemoryRequest&, v1::Memory& reply) {
    reply.set_counted(true);
    *reply.add_domains() = host();
    v1::ChargedInstance& instance = *reply.add_instances();
    instance.set_model("demo");
    instance.set_state("ready");
    instance.set_clients(2);
    instance.set_pinned(true);
    instance.set_window(4096);
    v1::DomainCharge& charge = *instance.add_charge();
    charge.set_domain("host");
    charge.set_bytes(600 * kMiB);
    v1::MemoryWait& wait = *reply.add_waiting();
    wait.set_model("other");
    wait.set_waits_for("clients");
    reply.mutable_pressure()->set_level("warning");
    reply.mutable_pressure()->set_source("foreign");
    reply.add_problems("memory.host_budget is 9 TiB, and there are 2 GiB.");
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"memory"}), ExitCode::kOk) << program.err.text;
  EXPECT_TRUE(prints("[wwwwwwwwwwwwkkkkkk..................------------------ffffff]"))
      << program.out.text;
  EXPECT_TRUE(prints("600 MiB free for models"));
  EXPECT_TRUE(prints("2 clients"));
  EXPECT_TRUE(prints("models that clients use"));
  EXPECT_TRUE(prints("pressure: warning, by other programs"));
  EXPECT_TRUE(prints("warning: memory.host_budget is 9 TiB"));
  ASSERT_EQ(program.run({"memory", "--json"}), ExitCode::kOk);
  EXPECT_EQ(boost::json::parse(program.out.text).at("domains").at(0).at("id").as_string(), "host");
}

TEST_F(MemoryVerbsTest, M16_PinAndUnpinTellWhatBecameOfIt) {
  daemon.pin = [](grpc::ServerContext&, const v1::PinModelRequest& request,
                  v1::PinModelResponse& reply) {
    reply.set_model(request.model());
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"pin", "demo"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text,
            "demo is pinned: once it is loaded it stays; 'berth load demo' loads it now\n");
  daemon.unpin = [](grpc::ServerContext&, const v1::UnpinModelRequest& request,
                    v1::UnpinModelResponse& reply) {
    reply.set_model(request.model());
    reply.set_was_pinned(true);
    reply.set_by_configuration(request.model() == "fixed");
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"unpin", "demo"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text, "demo is not pinned any more\n");
  ASSERT_EQ(program.run({"unpin", "fixed"}), ExitCode::kNo);
  EXPECT_TRUE(tells("the configuration says so"));
}

TEST_F(MemoryVerbsTest, M16_APinThatDoesNotFitShowsItsNumbers) {
  daemon.pin = [](grpc::ServerContext& context, const v1::PinModelRequest&, v1::PinModelResponse&) {
    v1::ErrorDetail detail = test::detail("insufficient_memory", "demo needs 2 GiB of host.");
    detail.set_domain("host");
    return test::refuse(context, grpc::StatusCode::RESOURCE_EXHAUSTED, detail);
  };
  ASSERT_EQ(program.run({"pin", "demo"}), ExitCode::kNo);
  EXPECT_TRUE(tells("demo needs 2 GiB of host."));
}

TEST_F(MemoryVerbsTest, M16_UnloadOfAPinnedModelSaysWhatToDo) {
  daemon.unload = [](grpc::ServerContext& context, const v1::UnloadModelRequest&,
                     v1::UnloadModelResponse&) {
    return test::refuse(
        context, grpc::StatusCode::FAILED_PRECONDITION,
        test::detail("conflict", "demo is pinned; unpin it, or unload it by force."));
  };
  ASSERT_EQ(program.run({"unload", "demo"}), ExitCode::kNo);
  EXPECT_TRUE(tells("'berth unpin demo' lets it go")) << program.err.text;
  daemon.unload = [](grpc::ServerContext& context, const v1::UnloadModelRequest&,
                     v1::UnloadModelResponse&) {
    return test::refuse(context, grpc::StatusCode::FAILED_PRECONDITION,
                        test::detail("conflict", "demo is pinned by the configuration; …"));
  };
  ASSERT_EQ(program.run({"unload", "demo"}), ExitCode::kNo);
  EXPECT_FALSE(tells("berth unpin")) << program.err.text;
  EXPECT_TRUE(tells("--force unloads it once, and it stays pinned"));
}

TEST_F(MemoryVerbsTest, M16_PsShowsChargesAndPins) {
  daemon.list_instances = [](grpc::ServerContext&, const v1::ListInstancesRequest&,
                             v1::ListInstancesResponse& reply) {
    v1::Instance& instance = *reply.add_instances();
    instance.set_model("demo");
    instance.set_state("ready");
    instance.set_pinned(true);
    instance.set_ttl_ms(1000);
    v1::DomainCharge& charge = *instance.add_charge();
    charge.set_domain("host");
    charge.set_bytes(600 * kMiB);
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"ps"}), ExitCode::kOk);
  EXPECT_TRUE(prints("CHARGED"));
  EXPECT_TRUE(prints("600 MiB"));
  EXPECT_TRUE(prints("pinned"));
}

// --- bars

TEST(MemoryBar, IsAsLongAsItMayBeWhateverIsThere) {
  v1::DomainState small = host();
  small.mutable_charged()->set_overhead_bytes(1);
  small.set_bank_bytes(1);
  const std::string bar = memory_bar(small, 20);
  EXPECT_EQ(bar.size(), 20U) << bar;
  EXPECT_NE(bar.find('o'), std::string::npos) << "the least part is seen";
  EXPECT_NE(bar.find('b'), std::string::npos);
  EXPECT_EQ(memory_bar(v1::DomainState(), 20), "");
  EXPECT_EQ(memory_bar(small, 0), "");
  v1::DomainState over = host();
  over.set_foreign_bytes(UINT64_MAX / 4);
  EXPECT_EQ(memory_bar(over, 30).size(), 30U);
}

// --- doctor

TEST(DoctorMemory, M1_ProblemsOfBudgetsAndDevicesAreWarnings) {
  v1::Memory memory;
  memory.set_counted(true);
  *memory.add_domains() = host();
  memory.add_problems("memory.devices.GPU-1: there is no such device");
  const Checks checks = judge_domains(memory);
  ASSERT_EQ(checks.size(), 2U);
  EXPECT_EQ(checks[0].finding, Finding::kOk);
  EXPECT_EQ(checks[1].finding, Finding::kWarning);
  EXPECT_NE(checks[1].found.find("no such device"), std::string::npos);
}

TEST(DoctorMemory, M3_ForeignUseThatLeavesLittleIsAWarning) {
  v1::Memory memory;
  memory.set_counted(true);
  v1::DomainState& domain = *memory.add_domains();
  domain = host();
  domain.set_limit_bytes(500 * kMiB);
  EXPECT_EQ(judge_domains(memory).at(0).finding, Finding::kWarning);
  domain.set_lost(true);
  EXPECT_EQ(judge_domains(memory).at(0).finding, Finding::kError);
}

TEST(DoctorMemory, M1_ABudgetAboveWhatThereIsBlamesNoOtherProgram) {
  v1::Memory memory;
  memory.set_counted(true);
  v1::DomainState& domain = *memory.add_domains();
  domain = host();
  domain.set_budget_bytes(9000 * kMiB);
  domain.set_limit_bytes(1700 * kMiB);  // of 2000, less 200 of others and 5 %
  memory.add_problems("memory.host_budget is 8.8 GiB, and there are 2 GiB of main memory");
  memory.add_problems("What the machine's memory is used for is not known");
  const Checks checks = judge_domains(memory);
  ASSERT_EQ(checks.size(), 3U);
  EXPECT_EQ(checks[0].finding, Finding::kOk) << checks[0].found;
  EXPECT_EQ(checks[1].finding, Finding::kWarning);
  EXPECT_EQ(checks[1].advice, "correct it in the configuration");
  EXPECT_EQ(checks[2].advice.find("configuration"), std::string::npos);
  domain.set_limit_bytes(900 * kMiB);
  EXPECT_EQ(judge_domains(memory)[0].finding, Finding::kWarning) << "others have half of it";
}

TEST(DoctorMemory, M1_ATableWithoutTheDaemonTellsItsProblems) {
  core::BudgetConfig budgets;
  budgets.host = 9000 * kMiB;
  budgets.devices["GPU-gone"] = {};
  const core::DomainTable table = core::make_domain_table(2000 * kMiB, {}, {}, budgets);
  const Checks checks = judge_table(table);
  EXPECT_EQ(std::ranges::count(checks, Finding::kWarning, &Check::finding), 2);
}

TEST(DoctorMemory, M2_ADriverThatIsMissedOrHangsIsAWarningOnlyWhereThereAreDevices) {
  using Readings = Result<std::vector<memory::DeviceReading>>;
  const Readings none = fail(Reason::kNotFound, "There is no libnvidia-ml.so.1.");
  EXPECT_EQ(judge_driver(none, false).finding, Finding::kOk);
  EXPECT_EQ(judge_driver(none, true).finding, Finding::kWarning);
  EXPECT_EQ(judge_driver(Readings(fail(Reason::kDeadline, "It hangs.")), false).finding,
            Finding::kWarning);
  EXPECT_EQ(judge_driver(Readings(std::vector<memory::DeviceReading>(2)), true).finding,
            Finding::kOk);
}

TEST(DoctorMemory, S18_AKernelWithoutStallFiguresIsAWarning) {
  EXPECT_EQ(judge_stalls(std::nullopt).finding, Finding::kWarning);
  EXPECT_EQ(judge_stalls(memory::StallShares()).finding, Finding::kOk);
}

}  // namespace
}  // namespace berth::cli
