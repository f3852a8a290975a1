#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/admin/server_state.h"
#include "supervisor/core/caller.h"
#include "supervisor/residency/request_book.h"
#include "tests/simulation/sim_world.h"
#include "tests/simulation/worker_script.h"

namespace berth::admin {

// The admin's operations over a residency under simulated time; the pool is the same thread. What
// happens becomes events in the hub; the store keeps them, but for those of level debug.
class AdminTest : public testing::Test {
 protected:
  // A request that asks for a model as the gateway does.
  class Request : public residency::ClaimObserver {
   public:
    [[nodiscard]] const residency::RequestEntry* claimant() const override { return entry.get(); }
    void on_claim_progress(const residency::ClaimProgress& progress) override {
      entry->waiting(!progress.queue_position);
    }
    void on_lease(residency::Lease got) override {
      lease = std::move(got);
      entry->admitted(lease.instance_id());
    }
    void on_claim_failed(Error error) override {
      entry->end(residency::RequestStage::kRefused, error.reason);
    }
    void finish(residency::RequestUsage usage) {
      entry->end(residency::RequestStage::kFinished, std::nullopt, usage);
      lease = {};
    }

    std::shared_ptr<residency::RequestEntry> entry;
    std::unique_ptr<residency::Claim> claim;
    residency::Lease lease;
  };

  // A machine whose memory is counted, where there are domains.
  explicit AdminTest(core::Domains domains = {})
      : residency_((
            world_.memory.domains = std::move(domains),
            world_.memory.files_are_sane =
                [this](const std::string& model) { return !broken_.contains(model); },
            world_.environment())) {
    // Another process's socket and command line must not be shown to clients.
    hub_.add_outlet([this](const Event& event) {
      if (stores_ && event.level != Level::kDebug) world_.store.put_event(event);
    });
    world_.events.on_event([this](const Event& event) { hub_.emit(event); });
  }

  std::unique_ptr<Request> ask(const std::string& id, const std::string& tenant = "uid:1",
                               const std::string& model = "demo") {
    auto request = std::make_unique<Request>();
    residency::RequestArrival arrival;
    arrival.id = id;
    arrival.model = model;
    arrival.tenant = tenant;
    arrival.protocol = "http";
    arrival.deadline = world_.clock.now() + std::chrono::minutes(10);
    arrival.cancel = [this, id] { cancelled_.push_back(id); };
    request->entry = requests_.arrive(std::move(arrival));
    request->claim =
        residency_.acquire(*catalog_->find(model), residency::RequestClass::kForeground,
                           world_.clock.now() + std::chrono::minutes(10), *request);
    return request;
  }
  std::unique_ptr<Request> served(const std::string& id, const std::string& tenant = "uid:1") {
    auto request = ask(id, tenant);
    EXPECT_TRUE(world_.clock.run_until([&] { return static_cast<bool>(request->lease); },
                                       std::chrono::minutes(1)));
    return request;
  }

  static core::Caller admin() { return {core::Role::kAdmin, true, "local"}; }
  static core::Caller client(const std::string& tenant = "uid:1") {
    return {core::Role::kClient, true, tenant};
  }

  // From now on whoever comes with a key may not any more.
  void revoke_keys() {
    revoked_ = true;
    state_.callers->changed();
    world_.clock.settle();
  }
  static core::Caller with_key(core::Role role) {
    return {.role = role, .entitled = true, .tenant = "key:alice", .key = "alice"};
  }

  bool revoked_ = false;
  bool stores_ = true;            // else the disk is full
  std::set<std::string> broken_;  // models whose files cannot be loaded
  sim::SimWorld world_;
  residency::Residency residency_;
  EventHub hub_{world_.clock, 0};
  residency::RequestBook requests_{world_.clock, world_.events};
  std::vector<std::string> cancelled_;
  std::shared_ptr<const catalog::Catalog> catalog_ =
      std::make_shared<catalog::Catalog>(std::vector<std::shared_ptr<const catalog::Model>>{
          sim::make_model("demo"), sim::make_model("other/one")});
  const std::shared_ptr<const catalog::Config> config_ = [] {
    auto config = std::make_shared<catalog::Config>();
    config->file = "/secret/berth.toml";
    config->server.state_dir = "/secret/state";
    config->server.log_dir = "/secret/log";
    return config;
  }();
  ServerState state_{
      .services = {world_.clock, world_.ids, world_.events, residency_, [this] { return catalog_; },
                   requests_},
      .store = world_.store,
      .events = hub_,
      .callers = std::make_shared<CallerWatch>([this](const core::Caller& caller) {
        if (!revoked_ || caller.key.empty()) return Status();
        return Status(fail(Reason::kUnauthenticated, "This key is not known any more."));
      }),
      .config = config_,
      .started = world_.clock.wall_now(),
      .http = "127.0.0.1:1",
      .grpc = {"unix:/secret/berth.sock"},
      .state = [] { return std::string("ready"); },
      .degraded = [] { return std::vector<std::string>{"/secret is slow"}; },
      .loop_lag = [] { return Duration(std::chrono::milliseconds(2)); },
      .process_memory = [](pid_t) { return std::uint64_t{1000}; },
      .tree_memory = [](pid_t) { return std::uint64_t{5000}; },
      .domains =
          [] {
            return std::vector<DomainMemory>{{"host", 64000, 32000}};
          },
      .on_readable = {},
      .run_blocking = [this](std::function<void()> work) { world_.clock.post(std::move(work)); }};
};

}  // namespace berth::admin
