// Want of memory that a cgroup's count proves (L9). What the kernel's log proves is tried in
// standing_failure_test.cc.

#include <gtest/gtest.h>

#include <sys/types.h>
#include <csignal>
#include <memory>
#include <set>

#include "supervisor/core/failure.h"
#include "tests/unit/residency/harness.h"

namespace berth::residency {
namespace {

class OomTest : public ResidencyTest {
 protected:
  OomTest() {
    residency_.reset();
    Environment environment = world_.environment();
    environment.oom_counted = [this](pid_t pid) { return counted_ && pid > 0; };
    residency_ = std::make_unique<Residency>(std::move(environment));
  }
  // The only one.
  core::FailureRecord record() {
    EXPECT_EQ(world_.store.failure_records().size(), 1U);
    return world_.store.failure_records().begin()->second;
  }
  void exits_loading(core::ExitStatus status) {
    sim::WorkerScript exits;
    exits.fate = sim::Fate::kExitsLoading;
    exits.exit = status;
    script(exits);
  }

  bool counted_ = true;  // what the cgroups say
};

// A command whose child was killed ends with a plain status of its own.
TEST_F(OomTest, L9_APlainExitWhileLoadingIsOomWhereTheCgroupCountedOne) {
  exits_loading(core::Exited{1});
  run_until_answered(*request(demo_));
  EXPECT_EQ(record().failure_class, core::FailureClass::kOom);
  EXPECT_EQ(record().exit, core::ExitStatus(core::Exited{1}));
  EXPECT_NE(record().reason.find("memory ran out"), std::string::npos) << record().reason;
  EXPECT_FALSE(record().log_tail.empty());
}

TEST_F(OomTest, L21_ALineOfTheLogKeepsItsClassBesideACount) {
  sim::WorkerScript exits;
  exits.fate = sim::Fate::kExitsLoading;
  exits.exit = core::Exited{1};
  exits.last_words = "error loading model: unknown model architecture: 'zebra'\n";
  script(exits);
  run_until_answered(*request(demo_));
  EXPECT_EQ(record().failure_class, core::FailureClass::kPermanent);
}

TEST_F(OomTest, L9_SoIsOneBySigkillAndNobodyReadsTheKernelsLog) {
  exits_loading(core::Signalled{SIGKILL, false});
  run_until_answered(*request(demo_));
  EXPECT_EQ(record().failure_class, core::FailureClass::kOom);
}

TEST_F(OomTest, L9_WithoutACountAPlainExitProvesNothing) {
  counted_ = false;
  sim::WorkerScript exits;
  exits.fate = sim::Fate::kExitsLoading;
  exits.exit = core::Exited{1};
  exits.kernel_tells_of_oom = true;  // of a process with that number, which ended otherwise
  script(exits);
  run_until_answered(*request(demo_));
  EXPECT_EQ(record().failure_class, core::FailureClass::kUnclassified);
}

TEST_F(OomTest, L9_APlainExitWhenReadyIsOomWhereTheCgroupCountedOne) {
  served(demo_)->lease = {};
  world_.clock.settle();
  world_.workers.newest("demo")->die(core::Exited{1});
  world_.clock.settle();
  EXPECT_EQ(record().failure_class, core::FailureClass::kOom);
  EXPECT_EQ(record().exit, core::ExitStatus(core::Exited{1}));
  const auto client = request(demo_);
  world_.clock.advance(minutes(5));
  EXPECT_TRUE(client->failed_with(Reason::kLoadFailed));
  EXPECT_EQ(world_.workers.all().size(), 1U) << "never restarted under the same plan";
}

TEST_F(OomTest, L9_WithoutACountADeathWhenReadyStandsNot) {
  counted_ = false;
  served(demo_)->lease = {};
  world_.clock.settle();
  world_.workers.newest("demo")->die(core::Exited{1});
  world_.clock.advance(seconds(5));
  EXPECT_TRUE(world_.store.failure_records().empty());
}

TEST_F(OomTest, L20_AStopThatWeOrderedIsNeverOom) {
  served(demo_)->lease = {};
  residency_->unload("demo", true, [](const Result<UnloadOutcome>& /*outcome*/) {});
  world_.clock.advance(seconds(20));
  EXPECT_EQ(state(), "absent");
  EXPECT_TRUE(world_.store.failure_records().empty());
}

}  // namespace
}  // namespace berth::residency
