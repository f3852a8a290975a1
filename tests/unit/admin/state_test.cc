#include "supervisor/admin/state.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/admin/failures.h"
#include "supervisor/admin/state_watch.h"
#include "tests/unit/admin/harness.h"

namespace berth::admin {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using testing::HasSubstr;
using testing::Not;

class StateTest : public AdminTest {
 protected:
  v1::State state(const core::Caller& caller) {
    std::optional<v1::State> got;
    get_state(state_, caller, [&](v1::State now) { got = std::move(now); });
    world_.clock.settle();
    EXPECT_TRUE(got);
    return got.value_or(v1::State());
  }
  static const v1::ModelState& model(const v1::State& state, const std::string& name) {
    for (const v1::ModelState& one : state.models()) {
      if (one.name() == name) return one;
    }
    ADD_FAILURE() << name << " is not in the state";
    static const v1::ModelState kNone;
    return kNone;
  }
};

TEST_F(StateTest, OneSnapshotTellsEverything) {
  const auto running = served("r-1");
  running->entry->prefill(4, 10);
  running->entry->tokens(1);
  ask("gone")->entry->end(residency::RequestStage::kCancelled);
  const v1::State now = state(admin());

  EXPECT_EQ(now.server().state(), "ready");
  EXPECT_EQ(now.server().config_file(), "/secret/berth.toml");
  ASSERT_EQ(now.domains_size(), 1);
  EXPECT_EQ(now.domains(0).id(), "host");
  EXPECT_EQ(now.domains(0).available_bytes(), 32000U);
  ASSERT_EQ(now.models_size(), 2);
  EXPECT_EQ(model(now, "demo").state(), "busy");
  EXPECT_EQ(model(now, "demo").instance().active(), 1U);
  EXPECT_EQ(model(now, "demo").instance().resident_bytes(), 5000U);
  EXPECT_EQ(model(now, "other/one").state(), "absent");
  EXPECT_FALSE(model(now, "other/one").has_instance());

  ASSERT_EQ(now.requests_size(), 2);
  const v1::RequestState& request = now.requests(0);
  EXPECT_EQ(request.id(), "r-1");
  EXPECT_EQ(request.state(), "generating");
  EXPECT_EQ(request.tenant(), "uid:1");
  EXPECT_EQ(request.protocol(), "http");
  EXPECT_EQ(request.prefill_done(), 4U);
  EXPECT_EQ(request.tokens(), 1U);
  EXPECT_EQ(request.instance_id(), model(now, "demo").instance().id());
  EXPECT_GE(request.admitted_unix_ms(), request.arrived_unix_ms());
  EXPECT_FALSE(request.has_ended_unix_ms());
  EXPECT_EQ(now.requests(1).state(), "cancelled");
  EXPECT_TRUE(now.requests(1).has_ended_unix_ms());
}

TEST_F(StateTest, I12_AClientSeesNoPathsAndNothingOfOtherTenants) {
  const auto running = served("mine", "uid:1");
  sim::WorkerScript script;
  std::vector<std::unique_ptr<Request>> others;
  // One place more than the instance has, so that some wait.
  for (int i = 0; i < 6; ++i) others.push_back(ask("theirs-" + std::to_string(i), "uid:2"));
  const auto waiting = ask("mine-too", "uid:1");
  world_.clock.settle();

  const v1::State all = state(admin());
  ASSERT_GT(model(all, "demo").queue_size(), 1);
  const v1::State cut = state(client("uid:1"));
  EXPECT_THAT(cut.DebugString(), Not(HasSubstr("secret")));
  EXPECT_THAT(cut.DebugString(), Not(HasSubstr("theirs")));
  EXPECT_THAT(cut.DebugString(), Not(HasSubstr("uid:")));
  ASSERT_TRUE(model(cut, "demo").has_instance());
  EXPECT_TRUE(model(cut, "demo").instance().socket().empty());
  EXPECT_EQ(model(cut, "demo").instance().command_size(), 0);

  // He sees how long the queue is, and his own in it.
  const auto& queue = model(cut, "demo").queue();
  ASSERT_EQ(queue.size(), model(all, "demo").queue_size());
  int own = 0;
  for (int i = 0; i < queue.size(); ++i) {
    EXPECT_EQ(queue[i].position(), static_cast<std::uint32_t>(i) + 1);
    EXPECT_GT(queue[i].until_unix_ms(), queue[i].since_unix_ms());
    // Tenants take turns, so that he does not wait behind all of the other's (M13).
    const auto& there = model(all, "demo").queue(i).request_id();
    EXPECT_EQ(queue[i].request_id(), there == "mine-too" ? "mine-too" : "");
    if (there == "mine-too") ++own;
  }
  EXPECT_EQ(own, 1);
  ASSERT_EQ(cut.requests_size(), 2);
  EXPECT_EQ(cut.requests(0).id(), "mine");
  EXPECT_TRUE(cut.requests(0).tenant().empty());
}

TEST_F(StateTest, T16_ItIsToldWhileAModelLoads) {
  sim::WorkerScript script;
  script.load = 5min;
  world_.workers.set_script([script](const std::string&) { return script; });
  const auto waiting = ask("r-1");
  world_.clock.advance(1min);
  const SteadyTime before = world_.clock.now();
  const v1::State now = state(admin());
  EXPECT_EQ(world_.clock.now(), before) << "nothing was waited for";
  EXPECT_EQ(model(now, "demo").state(), "loading");
  EXPECT_TRUE(model(now, "demo").instance().has_loading());
  EXPECT_EQ(now.requests(0).state(), "loading");
  EXPECT_EQ(model(now, "demo").queue(0).request_id(), "r-1");
}

TEST_F(StateTest, AFailureThatStandsIsShown) {
  sim::WorkerScript script;
  script.fate = sim::Fate::kSaysLoadFailed;
  world_.workers.set_script([script](const std::string&) { return script; });
  const auto refused = ask("r-1");
  world_.clock.advance(1min);
  const v1::State now = state(client());
  EXPECT_EQ(model(now, "demo").state(), "failed");
  EXPECT_EQ(model(now, "demo").failure().class_(), "permanent");
  EXPECT_EQ(model(now, "demo").failure().log_tail_size(), 0);
  EXPECT_EQ(now.requests(0).state(), "refused");
  EXPECT_EQ(now.requests(0).reason(), "load_failed");

  const v1::Failure for_stranger = model(state(core::Caller{}), "demo").failure();
  EXPECT_EQ(for_stranger.reason(), "The model could not be loaded.") << "I12";
  EXPECT_EQ(for_stranger.class_(), "");
}

TEST_F(StateTest, I12_WhyAModelOrItsHistoryCannotBeUsedNamesNoFilesToClients) {
  auto broken = std::make_shared<catalog::Model>(*sim::make_model("broken"));
  broken->problem = "secret.gguf is cut short.";
  catalog_ = std::make_shared<catalog::Catalog>(
      std::vector<std::shared_ptr<const catalog::Model>>{std::move(broken)});
  world_.store.fail_history = "cannot open /secret/berth.db";
  const auto report = [this](const core::Caller& caller) {
    std::optional<Result<v1::ModelReport>> got;
    explain_model(state_, "broken", caller, [&](auto told) { got = std::move(told); });
    world_.clock.settle();
    return got && *got ? **got : v1::ModelReport();
  };
  EXPECT_EQ(report(admin()).problem(), "secret.gguf is cut short.");
  EXPECT_THAT(report(admin()).history_problem(), HasSubstr("/secret/berth.db"));
  for (const core::Caller& caller : {client(), core::Caller{}}) {
    EXPECT_EQ(report(caller).problem(), "The model cannot be used.");
    EXPECT_EQ(report(caller).history_problem(), "The server's database cannot be used.");
    EXPECT_THAT(report(caller).DebugString(), Not(HasSubstr("secret")));
  }
}

TEST_F(StateTest, OneTenantsRefusalsHideNothingFromAnother) {
  ask("mine")->entry->end(residency::RequestStage::kFinished);
  for (int i = 0; i < 500; ++i) {
    ask("flood", "uid:2")->entry->end(residency::RequestStage::kRefused, Reason::kNoRoom);
  }
  const v1::State mine = state(client("uid:1"));
  ASSERT_EQ(mine.requests_size(), 1);
  EXPECT_EQ(mine.requests(0).id(), "mine");
  const v1::State all = state(admin());
  EXPECT_EQ(all.requests_size(), static_cast<int>(residency::RequestBook::kRefusedKept) + 1);
}

class Watcher : public StateListener {
 public:
  void on_state(v1::State state) override { states.push_back(std::move(state)); }
  void on_state_failed(const Error& error) override { failed = error; }
  std::vector<v1::State> states;
  std::optional<Error> failed;
};

TEST_F(StateTest, AWatchTellsChangesAndNothingElse) {
  const auto watcher = std::make_shared<Watcher>();
  const auto watch = StateWatch::start(state_, admin(), 1s, watcher);
  world_.clock.settle();
  ASSERT_EQ(watcher->states.size(), 1U) << "at once";
  world_.clock.advance(10s);
  EXPECT_EQ(watcher->states.size(), 1U) << "nothing changed";

  const auto request = served("r-1");
  world_.clock.advance(2s);
  const std::size_t after_load = watcher->states.size();
  EXPECT_GE(after_load, 2U);
  EXPECT_LE(after_load, 4U) << "at most once in a second";
  EXPECT_EQ(watcher->states.back().requests_size(), 1);
  request->finish({});
  world_.clock.advance(1s);
  ASSERT_EQ(watcher->states.size(), after_load + 1);
  world_.clock.advance(5s);
  EXPECT_EQ(watcher->states.size(), after_load + 1) << "a ttl that runs down is no change";

  watch->stop();
  world_.clock.settle();
  ask("r-2")->entry->end(residency::RequestStage::kCancelled);
  world_.clock.advance(5s);
  EXPECT_EQ(watcher->states.size(), after_load + 1);
}

TEST_F(StateTest, AllWhoWatchShareOneCopyForAMoment) {
  const auto first = std::make_shared<Watcher>();
  const auto watch = StateWatch::start(state_, admin(), 1s, first);
  world_.clock.settle();
  ask("r-1")->entry->end(residency::RequestStage::kCancelled);
  const auto second = std::make_shared<Watcher>();
  const auto another = StateWatch::start(state_, admin(), 1s, second);
  const auto client_watcher = std::make_shared<Watcher>();
  const auto third = StateWatch::start(state_, client("uid:1"), 1s, client_watcher);
  world_.clock.settle();
  ASSERT_EQ(second->states.size(), 1U);
  EXPECT_EQ(second->states[0].requests_size(), 0) << "the copy of the first";
  EXPECT_EQ(state(admin()).requests_size(), 1) << "who asks once gets what is";
  ASSERT_EQ(client_watcher->states.size(), 1U);
  EXPECT_EQ(client_watcher->states[0].requests_size(), 1) << "another tenant has a copy of its own";
  world_.clock.advance(2s);
  EXPECT_EQ(second->states.back().requests_size(), 1);
}

TEST_F(StateTest, AWatchEndsWithItsListener) {
  auto watcher = std::make_shared<Watcher>();
  const std::weak_ptr<StateWatch> watch = StateWatch::start(state_, admin(), 1s, watcher);
  world_.clock.advance(2s);
  EXPECT_FALSE(watch.expired());
  watcher.reset();
  world_.clock.advance(2s);
  EXPECT_TRUE(watch.expired());
}

TEST_F(StateTest, AWatchEndsWithTheKeyThatItWasAskedWith) {
  const auto watcher = std::make_shared<Watcher>();
  const auto other = std::make_shared<Watcher>();
  const auto watch = StateWatch::start(state_, with_key(core::Role::kClient), 1s, watcher);
  const auto another = StateWatch::start(state_, admin(), 1s, other);
  world_.clock.advance(2s);
  revoke_keys();
  ASSERT_TRUE(watcher->failed);
  EXPECT_EQ(watcher->failed->reason, Reason::kUnauthenticated);
  ask("r-1");
  world_.clock.advance(2s);
  EXPECT_EQ(watcher->states.size(), 1U);
  EXPECT_FALSE(other->failed);
  EXPECT_EQ(other->states.size(), 2U);
}

TEST(WatchInterval, HasBounds) {
  EXPECT_EQ(*watch_interval(0), Duration(1s));
  EXPECT_EQ(*watch_interval(100), Duration(100ms));
  EXPECT_EQ(watch_interval(99).error().extras->param, "interval_ms");
  EXPECT_EQ(watch_interval(60'001).error().reason, Reason::kInvalidArgument);
}

}  // namespace
}  // namespace berth::admin
