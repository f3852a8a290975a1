#include <algorithm>

#include "tests/unit/residency/harness.h"

namespace berth::residency {
namespace {

class FirstLoadTest : public ResidencyTest {
 protected:
  // Loads the model; whether it was told to prove more than one token. Then unloads it.
  bool first_load() {
    const auto client = served(demo_);
    const auto instances = residency_->instances();
    EXPECT_EQ(instances.size(), 1U);
    const auto& command = instances.front().command;
    const bool first = std::ranges::find(command, "--first-load") != command.end();
    client->lease = Lease();
    unload();
    return first;
  }
  void unload() {
    bool done = false;
    residency_->unload("demo", true,
                       [&done](const Result<UnloadOutcome>& /*outcome*/) { done = true; });
    EXPECT_TRUE(world_.clock.run_until([&] { return done; }, minutes(2)));
  }
  // Another run of the server, with the same store.
  void restart() {
    residency_.reset();
    residency_ = std::make_unique<Residency>(world_.environment());
    bool restored = false;
    residency_->restore_failures([&restored] { restored = true; });
    EXPECT_TRUE(world_.clock.run_until([&] { return restored; }, minutes(2)));
  }
};

TEST_F(FirstLoadTest, L6_TheFirstLoadUnderAProvenanceProvesMore) {
  EXPECT_TRUE(first_load());
  EXPECT_FALSE(first_load());
  demo_->served_context *= 2;
  EXPECT_TRUE(first_load()) << "another window";
  EXPECT_FALSE(first_load());
}

TEST_F(FirstLoadTest, L6_ARestartKnowsWhatWasProven) {
  EXPECT_TRUE(first_load());
  restart();
  EXPECT_FALSE(first_load());
  demo_->header_hash += 1;
  restart();
  EXPECT_TRUE(first_load()) << "another file";
}

TEST_F(FirstLoadTest, L6_ALoadThatFailedProvesNothing) {
  sim::WorkerScript failing;
  failing.fate = sim::Fate::kSaysLoadFailed;
  script(failing);
  const auto client = request(demo_);
  run_until_answered(*client);
  EXPECT_TRUE(client->error);
  residency_->retry("demo", "test");
  script({});
  EXPECT_TRUE(first_load());
}

}  // namespace
}  // namespace berth::residency
