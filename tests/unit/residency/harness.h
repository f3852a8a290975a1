#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/catalog/model.h"
#include "supervisor/residency/residency.h"
#include "supervisor/rpc/worker_client.h"
#include "tests/simulation/sim_world.h"
#include "tests/simulation/worker_script.h"

namespace berth::residency {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// Notes what its claim is told.
class TestClient : public ClaimObserver {
 public:
  void on_claim_progress(const ClaimProgress& report) override {
    progress.push_back(report);
    if (then_progress) then_progress();
  }
  void on_lease(Lease got) override {
    ++answers;
    lease = std::move(got);
    if (then) then();
  }
  void on_claim_failed(Error why) override {
    ++answers;
    error = std::move(why);
    if (then) then();
  }

  [[nodiscard]] bool failed_with(Reason reason) const { return error && error->reason == reason; }

  std::unique_ptr<Claim> claim;
  std::vector<ClaimProgress> progress;
  Lease lease;
  std::optional<Error> error;
  int answers = 0;
  std::function<void()> then;           // within the answer
  std::function<void()> then_progress;  // within each progress
};

// Notes how a generation ended.
class TestSink : public rpc::GenerateSink {
 public:
  bool on_event(core::GenerateEvent event) override {
    if (const auto* token = std::get_if<core::TokenEvent>(&event)) text += token->text;
    return true;
  }
  void on_end(Status status) override {
    ++ends;
    end = std::move(status);
  }

  std::string text;
  int ends = 0;
  std::optional<Status> end;
};

class ResidencyTest : public testing::Test {
 protected:
  void script(sim::WorkerScript one) {
    world_.workers.set_script([one](const std::string& /*model*/) { return one; });
  }
  std::unique_ptr<TestClient> request(const std::shared_ptr<catalog::Model>& model,
                                      Duration patience = minutes(5),
                                      RequestClass request_class = RequestClass::kForeground) {
    auto client = std::make_unique<TestClient>();
    client->claim =
        residency_->acquire(model, request_class, world_.clock.now() + patience, *client);
    EXPECT_EQ(client->answers, 0) << "no answer from within acquire()";
    return client;
  }
  // A request that got its lease.
  std::unique_ptr<TestClient> served(const std::shared_ptr<catalog::Model>& model) {
    auto client = request(model);
    EXPECT_TRUE(world_.clock.run_until([&] { return client->answers > 0; }, minutes(2)));
    EXPECT_TRUE(client->lease);
    return client;
  }
  void run_until_answered(const TestClient& client) {
    EXPECT_TRUE(world_.clock.run_until([&] { return client.answers > 0; }, minutes(60)));
  }
  [[nodiscard]] std::string state() const { return residency_->state_of("demo"); }
  [[nodiscard]] std::vector<std::string> instance_events() const {
    std::vector<std::string> names;
    for (const std::string& name : world_.events.names()) {
      if (name != "load.progress") names.push_back(name);
    }
    return names;
  }

  sim::SimWorld world_;
  std::shared_ptr<catalog::Model> demo_ = sim::make_model("demo");
  std::unique_ptr<Residency> residency_ = std::make_unique<Residency>(world_.environment());
};

}  // namespace berth::residency
