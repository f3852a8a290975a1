#include "supervisor/admin/event_feed.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/admin/convert.h"
#include "supervisor/admin/load_operation.h"
#include "tests/unit/admin/harness.h"

namespace berth::admin {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Listener : public EventListener {
 public:
  bool on_feed_event(v1::Event event) override {
    events.push_back(std::move(event));
    if (on_event) on_event();
    return room;
  }
  void on_feed_end() override { ended = true; }
  void on_feed_failed(const Error& error) override { failed = error; }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const v1::Event& event : events) all.push_back(event.name());
    return all;
  }
  std::vector<v1::Event> events;
  bool ended = false;
  bool room = true;
  std::function<void()> on_event;
  std::optional<Error> failed;
};

class EventFeedTest : public AdminTest {
 protected:
  std::shared_ptr<Listener> follow(EventAsk ask, std::shared_ptr<Listener> listener = nullptr) {
    if (!listener) listener = std::make_shared<Listener>();
    auto place = hub_.take_place(ask.caller.tenant);
    EXPECT_TRUE(place);
    feeds_.push_back(EventFeed::start(state_, std::move(ask), *std::move(place), listener));
    world_.clock.settle();
    return listener;
  }
  // The numbers that an events.gap tells.
  static std::pair<std::int64_t, std::int64_t> gap_of(const v1::Event& event) {
    EXPECT_EQ(event.name(), "events.gap");
    if (event.fields_size() != 2) return {-1, -1};
    EXPECT_EQ(event.fields(0).name(), "after");
    EXPECT_EQ(event.fields(1).name(), "next");
    return {event.fields(0).integer(), event.fields(1).integer()};
  }
  void emit_stopping(int number) {
    world_.events.emit_typed(events::ServerStopping{.active_requests = number});
  }
  std::vector<std::shared_ptr<EventFeed>> feeds_;
};

TEST_F(EventFeedTest, GivesWhatWasThenWhatHappens) {
  emit_stopping(1);
  EventAsk ask;
  ask.follow = true;
  ask.caller = admin();
  const auto listener = follow(ask);
  EXPECT_THAT(listener->names(), ElementsAre("server.stopping"));
  emit_stopping(2);
  world_.clock.settle();
  ASSERT_EQ(listener->events.size(), 2U);
  EXPECT_EQ(listener->events[1].sequence(), listener->events[0].sequence() + 1);
  EXPECT_FALSE(listener->ended);
  feeds_.back()->stop();
  world_.clock.settle();
  emit_stopping(3);
  world_.clock.settle();
  EXPECT_EQ(listener->events.size(), 2U);
}

TEST_F(EventFeedTest, TheServerGoesOnWhileEventsAreConverted) {
  emit_stopping(1);
  const auto listener = std::make_shared<Listener>();
  // Whoever emits waits for the hub's lock: here for ever, if a replay held it.
  listener->on_event = [this, &told = listener->events] {
    if (told.size() < 3) emit_stopping(static_cast<int>(told.size()));
  };
  EventAsk ask;
  ask.follow = true;
  ask.caller = admin();
  follow(ask, listener);
  ASSERT_EQ(listener->events.size(), 3U);
  EXPECT_EQ(listener->events[2].sequence(), listener->events[0].sequence() + 2);
}

TEST_F(EventFeedTest, WaitsForAListenerWithoutRoom) {
  for (int i = 0; i < 100; ++i) emit_stopping(i);
  const auto listener = std::make_shared<Listener>();
  listener->room = false;
  EventAsk ask;
  ask.follow = true;
  ask.caller = admin();
  follow(ask, listener);
  EXPECT_EQ(listener->events.size(), 1U);
  emit_stopping(100);
  world_.clock.settle();
  EXPECT_EQ(listener->events.size(), 1U);
  feeds_.back()->resume();
  world_.clock.settle();
  EXPECT_EQ(listener->events.size(), 2U);
  listener->room = true;
  feeds_.back()->resume();
  world_.clock.settle();
  EXPECT_EQ(listener->events.size(), 101U);
}

TEST_F(EventFeedTest, WhoFallsTooFarBehindIsToldSoAndDropped) {
  emit_stopping(0);
  const auto listener = std::make_shared<Listener>();
  listener->room = false;
  EventAsk ask;
  ask.follow = true;
  ask.caller = admin();
  follow(ask, listener);
  for (std::size_t i = 0; i < EventFeed::kMostBehind; ++i) emit_stopping(1);
  world_.clock.settle();
  EXPECT_FALSE(listener->failed);
  emit_stopping(1);
  world_.clock.settle();
  ASSERT_TRUE(listener->failed);
  EXPECT_EQ(listener->failed->reason, Reason::kQueueFull);
  ASSERT_THAT(listener->names(), ElementsAre("server.stopping", "events.gap"));
  EXPECT_EQ(gap_of(listener->events[1]), std::pair(1L, 8195L)) << "what waited is given up";
  feeds_.back()->resume();
  emit_stopping(1);
  world_.clock.settle();
  EXPECT_EQ(listener->events.size(), 2U);
}

TEST_F(EventFeedTest, WhoWasGivenNothingYetMissesWhatIsBehindHisNumber) {
  for (int i = 0; i < 5; ++i) emit_stopping(i);
  std::vector<std::function<void()>> jobs;
  state_.run_blocking = [&jobs](std::function<void()> job) { jobs.push_back(std::move(job)); };
  EventAsk ask;
  ask.after = 5;
  ask.follow = true;
  ask.caller = admin();
  const auto listener = follow(ask);
  ASSERT_EQ(jobs.size(), 1U);
  std::exchange(jobs, {}).front()();  // it watches from now on
  for (std::size_t i = 0; i <= EventFeed::kMostBehind; ++i) emit_stopping(1);
  while (!jobs.empty()) {
    for (const auto& job : std::exchange(jobs, {})) job();
  }
  ASSERT_EQ(listener->events.size(), 1U);
  EXPECT_EQ(gap_of(listener->events[0]), std::pair(5L, 8199L));
  EXPECT_TRUE(listener->failed);
}

TEST_F(EventFeedTest, ALongHistoryIsReadInPagesWhileItIsTaken) {
  for (int i = 0; i < 1'000; ++i) emit_stopping(i);
  const auto listener = std::make_shared<Listener>();
  listener->room = false;
  EventAsk ask;
  ask.since = WallTime{1ms};
  ask.follow = true;
  ask.caller = admin();
  follow(ask, listener);
  for (int i = 0; i < 100; ++i) {
    feeds_.back()->resume();
    world_.clock.settle();
  }
  EXPECT_EQ(listener->events.size(), 101U);
  EXPECT_EQ(world_.store.event_asks, 1) << "the next page is read when this one is taken";
  listener->room = true;
  feeds_.back()->resume();
  world_.clock.settle();
  emit_stopping(1'000);
  world_.clock.settle();
  ASSERT_EQ(listener->events.size(), 1'001U);
  for (std::size_t i = 0; i < listener->events.size(); ++i) {
    ASSERT_EQ(listener->events[i].sequence(), i + 1);
  }
  EXPECT_EQ(world_.store.event_asks, 4);
}

TEST_F(EventFeedTest, WhatGoesWhileAHistoryIsReadIsToldInItsPlace) {
  for (int i = 0; i < 1'000; ++i) emit_stopping(i);
  const auto listener = std::make_shared<Listener>();
  listener->room = false;
  EventAsk ask;
  ask.since = WallTime{1ms};
  ask.caller = admin();
  follow(ask, listener);
  ASSERT_EQ(world_.store.event_asks, 1);
  world_.store.prune_events(500);
  listener->room = true;
  feeds_.back()->resume();
  world_.clock.settle();
  // A page of 256, which was read before.
  ASSERT_EQ(listener->events.size(), 757U);
  EXPECT_EQ(listener->events[255].sequence(), 256U);
  EXPECT_EQ(gap_of(listener->events[256]), std::pair(256L, 501L));
  EXPECT_EQ(listener->events[257].sequence(), 501U);
  EXPECT_TRUE(listener->ended);
}

TEST_F(EventFeedTest, WhatNeitherTheStoreNorTheHubKeptIsToldBetweenThem) {
  for (int i = 0; i < 10; ++i) emit_stopping(i);
  stores_ = false;
  for (int i = 0; i < static_cast<int>(EventHub::kKept) + 20; ++i) emit_stopping(i);
  EventAsk of_all;
  of_all.since = WallTime{1ms};
  for (EventAsk ask : {EventAsk(), of_all}) {
    ask.caller = admin();
    const auto listener = follow(ask);
    ASSERT_EQ(listener->events.size(), 10 + 1 + EventHub::kKept);
    EXPECT_EQ(listener->events[9].sequence(), 10U);
    EXPECT_EQ(gap_of(listener->events[10]), std::pair(10L, 31L));
    EXPECT_EQ(listener->events[11].sequence(), 31U);
  }
  EventAsk behind;
  behind.after = 20;
  behind.follow = true;
  behind.caller = admin();
  const auto listener = follow(behind);
  ASSERT_EQ(listener->events.size(), 1 + EventHub::kKept);
  EXPECT_EQ(gap_of(listener->events[0]), std::pair(20L, 31L));
  // And nothing is told twice where the store cannot be read at all.
  world_.store.prune_events(0);
  const auto without = follow(behind);
  ASSERT_EQ(without->events.size(), 1 + EventHub::kKept);
  EXPECT_EQ(gap_of(without->events[0]), std::pair(20L, 31L));
}

TEST_F(EventFeedTest, WhoComesBackGetsEventsOfLevelDebugWhileTheHubHasThem) {
  emit_stopping(1);
  world_.clock.advance(1s);
  const WallTime left = world_.clock.wall_now();
  world_.clock.advance(1s);
  world_.events.emit_typed(events::LoadProgress{.model = "demo", .phase = "weights"});
  emit_stopping(3);
  EventAsk by_number;
  by_number.after = 1;
  by_number.caller = admin();
  EXPECT_THAT(follow(by_number)->names(), ElementsAre("load.progress", "server.stopping"));
  EventAsk by_time;
  by_time.since = left;
  by_time.caller = admin();
  EXPECT_THAT(follow(by_time)->names(), ElementsAre("load.progress", "server.stopping"));
  EXPECT_EQ(world_.store.event_asks, 0);
  // Behind the last one there is nothing, and before the first one of the hub it is the store's.
  by_number.after = 3;
  EXPECT_THAT(follow(by_number)->names(), IsEmpty());
  by_time.since = WallTime{1ms};
  EXPECT_THAT(follow(by_time)->names(), ElementsAre("server.stopping", "server.stopping"));
}

TEST_F(EventFeedTest, WhatIsNotKeptAnyMoreIsToldWithItsNumbers) {
  constexpr int kMore = static_cast<int>(EventHub::kKept);
  for (int i = 0; i < kMore + 100; ++i) emit_stopping(i);
  world_.store.prune_events(kMore + 10);  // from 91 on
  const auto first_of = [this](EventAsk ask) {
    ask.caller = client("uid:1");
    const auto listener = follow(ask);
    return listener->events.empty() ? v1::Event() : listener->events.front();
  };
  EventAsk by_number;
  by_number.after = 50;
  EXPECT_EQ(gap_of(first_of(by_number)), std::pair(50L, 91L));
  EXPECT_EQ(first_of(by_number).sequence(), 0U) << "it is none of the numbered ones";
  EXPECT_EQ(first_of(by_number).time_unix_ms(), world_.clock.wall_now().time_since_epoch().count());
  EventAsk by_time;
  by_time.since = WallTime{1ms};
  EXPECT_EQ(gap_of(first_of(by_time)), std::pair(0L, 91L));
  by_number.after = 90;
  EXPECT_EQ(first_of(by_number).name(), "") << "all of it is there";
  EXPECT_EQ(first_of({}).name(), "") << "nothing in particular was asked for";
}

TEST_F(EventFeedTest, ANumberThatWasNeverGivenIsOfAnotherFile) {
  for (int i = 0; i < 3; ++i) emit_stopping(i);
  EventAsk ask;
  ask.after = 5'000;
  ask.caller = admin();
  const auto listener = follow(ask);
  ASSERT_EQ(listener->events.size(), 4U);
  EXPECT_EQ(gap_of(listener->events[0]), std::pair(5'000L, 1L));
  EXPECT_EQ(listener->events[1].sequence(), 1U);
}

TEST_F(EventFeedTest, EndsWithTheKeyThatItWasAskedWith) {
  emit_stopping(1);
  EventAsk ask;
  ask.follow = true;
  ask.caller = with_key(core::Role::kAdmin);
  const auto reads = follow(ask);
  const auto slow = std::make_shared<Listener>();
  slow->room = false;
  follow(ask, slow);
  ask.caller = admin();
  const auto other = follow(ask);
  revoke_keys();
  for (const auto& listener : {reads, slow}) {
    ASSERT_TRUE(listener->failed);
    EXPECT_EQ(listener->failed->reason, Reason::kUnauthenticated);
  }
  EXPECT_FALSE(other->failed);
  emit_stopping(2);
  world_.clock.settle();
  EXPECT_EQ(reads->events.size(), 1U);
  EXPECT_EQ(other->events.size(), 2U);

  ask.caller = with_key(core::Role::kAdmin);
  const auto late = follow(ask);
  ASSERT_TRUE(late->failed) << "revoked between his being let in and this";
  EXPECT_THAT(late->events, IsEmpty());
}

TEST_F(EventFeedTest, OthersEventsCutNothingFromAClientsHistory) {
  world_.events.emit_typed(events::RequestFinished{.request = "mine", .tenant = "uid:1"});
  world_.events.emit_typed(events::LoadStarted{.model = "demo"});
  for (int i = 0; i < 300; ++i) {
    world_.events.emit_typed(events::RequestFinished{.request = "theirs", .tenant = "uid:2"});
  }
  EventAsk ask;
  ask.caller = client("uid:1");
  EXPECT_THAT(follow(ask)->names(), ElementsAre("request.finished", "load.started"));
}

TEST_F(EventFeedTest, OneTenantsWatchersAreBounded) {
  EventAsk ask;
  ask.follow = true;
  ask.caller = client("uid:1");
  for (std::size_t i = 0; i < EventHub::kMostOfTenant; ++i) follow(ask);
  const auto none = hub_.take_place(ask.caller.tenant);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().reason, Reason::kQueueFull);
  EXPECT_TRUE(hub_.take_place("uid:2"));
  feeds_.front()->stop();
  world_.clock.settle();
  EXPECT_TRUE(hub_.take_place(ask.caller.tenant));
}

TEST_F(EventFeedTest, GoesOnBehindASequence) {
  for (int i = 0; i < 500; ++i) emit_stopping(i);
  EventAsk ask;
  ask.after = 300;
  ask.caller = admin();
  const auto listener = follow(ask);
  ASSERT_EQ(listener->events.size(), 200U);
  EXPECT_EQ(listener->events.front().sequence(), 301U);
  EXPECT_TRUE(listener->ended);
}

TEST_F(EventFeedTest, I12_AClientSeesModelsAndHisOwnRequestsWithoutPaths) {
  emit_stopping(1);
  world_.events.emit_typed(events::ModelBroken{.model = "demo", .problem = "/secret"});
  world_.events.emit_typed(
      events::LoadStarted{.model = "demo", .instance = "i", .pid = 7, .cause = "request"});
  world_.events.emit_typed(events::FailureLifted{.model = "demo", .detail = "/secret moved"});
  world_.events.emit_typed(events::RequestFinished{.request = "mine", .tenant = "uid:1"});
  world_.events.emit_typed(events::RequestFinished{.request = "theirs", .tenant = "uid:2"});
  EventAsk ask;
  ask.caller = client("uid:1");
  const auto listener = follow(ask);
  EXPECT_THAT(listener->names(), ElementsAre("load.started", "failure.lifted", "request.finished"));
  std::string all;
  for (const v1::Event& event : listener->events) all += event.DebugString();
  for (const char* hidden : {"secret", "theirs", "uid:", "pid"}) {
    EXPECT_EQ(all.find(hidden), std::string::npos) << all;
  }
  EXPECT_NE(all.find("mine"), std::string::npos);
}

TEST_F(EventFeedTest, I12_OfWhatWentWrongNobodyIsToldMoreThanTheErrorTold) {
  const core::Caller stranger;
  events::RequestRefused refused;
  refused.reason = "no_room";
  refused.message = "secret-model holds 7 GiB; see /secret/log.";
  refused.tenant = stranger.tenant;
  world_.events.emit_typed(refused);
  refused.reason = "invalid_argument";
  refused.message = "n must be 1.";
  world_.events.emit_typed(refused);
  events::RequestFailed failed;
  failed.reason = "worker_died";
  failed.message = "secret-model died of SIGSEGV in /secret/program.";
  failed.tenant = stranger.tenant;
  world_.events.emit_typed(failed);
  world_.events.emit_typed(events::LoadFailed{.model = "demo",
                                              .failure_class = "secret-class",
                                              .reason = "secret-model cannot open /secret/x",
                                              .exit = "exit secret-3"});
  world_.events.emit_typed(
      events::FailureStands{.model = "demo", .failure_class = "secret-class", .reason = "secret"});
  world_.events.emit_typed(events::LoadReady{.model = "demo", .kv_bytes = 12345});

  EventAsk ask;
  ask.caller = stranger;
  const auto listener = follow(ask);
  ASSERT_EQ(listener->events.size(), 6U);
  std::string all;
  for (const v1::Event& event : listener->events) all += event.DebugString();
  EXPECT_EQ(all.find("secret"), std::string::npos) << all;
  EXPECT_EQ(all.find("12345"), std::string::npos) << all;
  for (const char* told : {"There is no memory for the model now.", "n must be 1.",
                           "The model could not be loaded.", "no_room"}) {
    EXPECT_NE(all.find(told), std::string::npos) << told;
  }

  ask.caller = client(stranger.tenant);
  const auto entitled = follow(ask);
  all.clear();
  for (const v1::Event& event : entitled->events) all += event.DebugString();
  EXPECT_EQ(all.find("/secret"), std::string::npos) << all;
  for (const char* told : {"secret-model holds 7 GiB", "secret-class", "exit secret-3", "12345"}) {
    EXPECT_NE(all.find(told), std::string::npos) << told;
  }
}

// Who waits for a load.
class Loader : public LoadListener {
 public:
  void on_load_lifted(const core::FailureRecord& /*record*/) override { ++lifted; }
  void on_load_progress(const residency::ClaimProgress& /*progress*/) override { ++progress; }
  void on_load_done(const std::optional<v1::Instance>& instance) override {
    ++ends;
    state = instance ? instance->state() : "none";
  }
  void on_load_failed(const Error& why) override {
    ++ends;
    error = why;
  }
  int lifted = 0;
  int progress = 0;
  int ends = 0;
  std::string state;
  std::optional<Error> error;
};

class LoadOperationTest : public AdminTest {
 protected:
  std::shared_ptr<Loader> load(LoadAsk ask) {
    auto loader = std::make_shared<Loader>();
    ask.deadline = world_.clock.now() + 1h;
    operation_ = LoadOperation::start(state_, std::move(ask), loader);
    EXPECT_EQ(loader->ends, 0);
    return loader;
  }
  std::shared_ptr<LoadOperation> operation_;
};

TEST_F(LoadOperationTest, WaitsUntilTheModelIsReady) {
  const auto loader = load({.model = "demo", .caller = admin()});
  world_.clock.advance(1min);
  EXPECT_EQ(loader->ends, 1);
  EXPECT_FALSE(loader->error);
  EXPECT_GT(loader->progress, 0);
  EXPECT_EQ(residency_.state_of("demo"), "ready") << "the lease was let go";
}

TEST_F(LoadOperationTest, WithoutWaitingItSaysThatTheLoadHasBegun) {
  sim::WorkerScript script;
  script.load = 5min;
  world_.workers.set_script([script](const std::string&) { return script; });
  const auto loader = load({.model = "demo", .wait = false, .caller = admin()});
  world_.clock.advance(1s);
  EXPECT_EQ(loader->ends, 1);
  EXPECT_EQ(loader->state, "starting");
  EXPECT_EQ(residency_.state_of("demo"), "loading");
}

TEST_F(LoadOperationTest, L23_TheFailureOfAModelThatIsGoneIsLiftedByHand) {
  sim::WorkerScript script;
  script.fate = sim::Fate::kSaysLoadFailed;
  world_.workers.set_script([script](const std::string&) { return script; });
  const auto refused = ask("r-1");
  world_.clock.advance(1min);
  ASSERT_EQ(residency_.standing_failures().size(), 1U);
  const auto whole = std::exchange(catalog_, std::make_shared<catalog::Catalog>());

  auto loader = load({.model = "demo", .caller = admin()});
  world_.clock.settle();
  EXPECT_EQ(residency_.standing_failures().size(), 1U) << "no retry";
  loader = load({.model = "demo", .retry = true, .caller = client()});
  world_.clock.settle();
  EXPECT_EQ(residency_.standing_failures().size(), 1U) << "no admin";

  loader = load({.model = "demo", .retry = true, .caller = admin()});
  world_.clock.settle();
  EXPECT_EQ(loader->lifted, 1);
  ASSERT_TRUE(loader->error);
  EXPECT_EQ(loader->error->reason, Reason::kUnknownModel);
  EXPECT_THAT(loader->error->message, HasSubstr("does not stand any more"));
  EXPECT_THAT(residency_.standing_failures(), IsEmpty());
}

TEST_F(LoadOperationTest, L5_WhoGoesAwayLeavesTheLoadRunning) {
  const auto loader = load({.model = "demo", .caller = admin()});
  world_.clock.settle();
  operation_->stop();
  world_.clock.advance(1min);
  EXPECT_EQ(loader->ends, 0);
  EXPECT_EQ(residency_.state_of("demo"), "ready");
}

TEST_F(LoadOperationTest, OnlyAdminsLoadUnloadAndEndOthersRequests) {
  const auto loader = load({.model = "demo", .caller = client()});
  world_.clock.settle();
  ASSERT_TRUE(loader->error);
  EXPECT_EQ(loader->error->reason, Reason::kPermissionDenied);

  std::optional<Result<v1::UnloadModelResponse>> unloaded;
  unload_model(state_, "demo", false, client(), [&](auto outcome) { unloaded = outcome; });
  world_.clock.settle();
  EXPECT_EQ(unloaded->error().reason, Reason::kPermissionDenied);

  const auto running = served("theirs", "uid:2");
  std::optional<Status> cancelled;
  const auto cancel = [&](const core::Caller& caller) {
    cancel_request(state_, "theirs", caller, [&](Status done) { cancelled = std::move(done); });
    world_.clock.settle();
    return static_cast<bool>(*cancelled);
  };
  EXPECT_FALSE(cancel(client("uid:1")));
  EXPECT_EQ(cancelled->error().reason, Reason::kNotFound) << "as if there were none";
  EXPECT_THAT(cancelled_, IsEmpty());
  EXPECT_TRUE(cancel(client("uid:2")));
  EXPECT_TRUE(cancel(admin()));
  EXPECT_THAT(cancelled_, ElementsAre("theirs", "theirs"));
}

TEST_F(LoadOperationTest, AnUnloadTellsHowTheProcessEnded) {
  served("r-1")->finish({});
  world_.clock.settle();
  std::optional<Result<v1::UnloadModelResponse>> unloaded;
  unload_model(state_, "demo", false, admin(), [&](auto outcome) { unloaded = outcome; });
  world_.clock.advance(1min);
  ASSERT_TRUE(unloaded && *unloaded);
  EXPECT_FALSE((*unloaded)->instance_id().empty());
  EXPECT_EQ(residency_.state_of("demo"), "absent");
}

}  // namespace
}  // namespace berth::admin
