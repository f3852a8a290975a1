#include "supervisor/api_routes.h"

#include <boost/json.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/admin/event_feed.h"
#include "supervisor/query_arguments.h"
#include "tests/unit/admin/harness.h"

namespace berth {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Notes what it is told; a slow client where `room` is false.
class FakeReply : public gateway::Reply {
 public:
  void send(gateway::HttpResponse response) override {
    EXPECT_FALSE(head);
    head = std::move(response);
    ended = true;
  }
  void begin(gateway::HttpResponse response) override {
    EXPECT_FALSE(head);
    head = std::move(response);
  }
  bool write(std::string piece) override {
    EXPECT_FALSE(ended);
    text += piece;
    return room;
  }
  void end() override {
    EXPECT_FALSE(ended);
    ended = true;
  }
  void break_off() override { ended = true; }

  [[nodiscard]] boost::json::value json() const { return boost::json::parse(head->body); }
  [[nodiscard]] std::string code() const {
    return std::string(json().at("error").at("code").as_string());
  }

  std::optional<gateway::HttpResponse> head;
  std::string text;
  bool room = true;
  bool ended = false;
};

class ApiRoutesTest : public admin::AdminTest {
 protected:
  struct Exchange {
    std::shared_ptr<FakeReply> reply = std::make_shared<FakeReply>();
    std::shared_ptr<gateway::Handler> handler;
  };

  // Without a server: what matches is `argument`.
  Exchange call(const std::string& method, const std::string& pattern, const std::string& argument,
                const std::string& query = {}, const std::string& body = {}, bool room = true) {
    Exchange exchange;
    exchange.reply->room = room;
    for (const gateway::Route& route : routes_) {
      if (route.method != method || route.pattern != pattern) continue;
      gateway::HttpRequest request;
      request.method = method;
      request.path = pattern;
      request.arguments = {argument};
      request.query = query;
      request.body = body;
      request.caller = caller_of(route.access);
      request.id = "id-1";
      exchange.handler = route.start(std::move(request), exchange.reply);
      world_.clock.settle();
      return exchange;
    }
    ADD_FAILURE() << "no route " << method << ' ' << pattern;
    return exchange;
  }
  Exchange post(const std::string& argument, const std::string& body = {}) {
    return call("POST", "/api/models/{...}", argument, {}, body);
  }

  [[nodiscard]] core::Caller caller_of(gateway::Access access) const {
    const bool admin = access == gateway::Access::kAdmin;
    if (by_key_) return with_key(admin ? core::Role::kAdmin : core::Role::kClient);
    return admin ? AdminTest::admin() : AdminTest::client();
  }

  bool by_key_ = false;
  admin::Metrics metrics_{world_.clock};
  const std::vector<gateway::Route> routes_ = api_routes(state_, metrics_);
};

TEST_F(ApiRoutesTest, TheStateHasTheNamesOfTheProto) {
  served("r-1")->finish({});
  const Exchange exchange = call("GET", "/api/state", {});
  ASSERT_TRUE(exchange.reply->head);
  const boost::json::value state = exchange.reply->json();
  EXPECT_EQ(state.at("server").at("state").as_string(), "ready");
  EXPECT_EQ(state.at("domains").at(0).at("total_bytes").as_int64(), 64000);
  EXPECT_EQ(state.at("models").at(0).at("instance").at("state").as_string(), "ready");
  EXPECT_TRUE(state.at("models").at(0).at("queue").as_array().empty());
  EXPECT_EQ(state.at("requests").at(0).at("id").as_string(), "r-1");
  EXPECT_THAT(exchange.reply->head->body, Not(HasSubstr("secret")));
}

TEST_F(ApiRoutesTest, ALoadAnswersWhenTheModelIsReady) {
  const Exchange exchange = post("other/one/load", "{}");
  EXPECT_FALSE(exchange.reply->head) << "it loads";
  world_.clock.advance(1min);
  ASSERT_TRUE(exchange.reply->head);
  EXPECT_EQ(exchange.reply->head->status, 200);
  EXPECT_EQ(exchange.reply->json().at("ready").at("model").as_string(), "other/one");
  const Exchange unload = post("other/one/unload");
  world_.clock.advance(1min);
  EXPECT_TRUE(unload.reply->json().as_object().contains("took_ms"));
}

TEST_F(ApiRoutesTest, ARetryTellsWhatItLifted) {
  sim::WorkerScript script;
  script.fate = sim::Fate::kSaysLoadFailed;
  world_.workers.set_script([script](const std::string&) { return script; });
  const Exchange failed = post("demo/load");
  world_.clock.advance(1min);
  EXPECT_EQ(failed.reply->head->status, 503);
  EXPECT_EQ(failed.reply->code(), "load_failed");
  world_.workers.set_script([](const std::string&) { return sim::WorkerScript(); });
  const Exchange retried = post("demo/retry");
  world_.clock.advance(1min);
  EXPECT_EQ(retried.reply->json().at("lifted").at("class").as_string(), "permanent");
  EXPECT_EQ(retried.reply->json().at("ready").at("state").as_string(), "ready");
}

TEST_F(ApiRoutesTest, M7_ThePlanAndTheMemoryAreRead) {
  Exchange exchange = call("GET", "/api/plan", {}, "model=demo");
  ASSERT_TRUE(exchange.reply->head);
  EXPECT_EQ(exchange.reply->head->status, 200);
  EXPECT_EQ(exchange.reply->json().at("decision").as_string(), "fits");
  exchange = call("GET", "/api/plan", {}, "model=demo&context=8192&sequences=2");
  EXPECT_EQ(exchange.reply->json().at("sequences").as_int64(), 2);
  exchange = call("GET", "/api/memory", {});
  EXPECT_EQ(exchange.reply->json().at("domains").at(0).at("id").as_string(), "host");
  EXPECT_EQ(call("GET", "/api/plan", {}, "model=zebra").reply->code(), "unknown_model");
  EXPECT_EQ(call("GET", "/api/plan", {}).reply->code(), "invalid_argument");
  EXPECT_EQ(call("GET", "/api/plan", {}, "model=demo&context=x").reply->code(), "invalid_argument");
  EXPECT_EQ(call("GET", "/api/plan", {}, "model=demo&context=1").reply->code(), "invalid_argument");
}

TEST_F(ApiRoutesTest, M16_AModelIsPinnedAndUnpinned) {
  Exchange exchange = post("other/one/pin", "{}");
  ASSERT_TRUE(exchange.reply->head);
  EXPECT_EQ(exchange.reply->head->status, 200);
  EXPECT_FALSE(exchange.reply->json().at("was_pinned").as_bool());
  EXPECT_TRUE(residency_.pinned("other/one"));
  exchange = post("other/one/unpin");
  EXPECT_TRUE(exchange.reply->json().at("was_pinned").as_bool());
  EXPECT_FALSE(residency_.pinned("other/one"));
  EXPECT_EQ(post("zebra/pin").reply->code(), "unknown_model");
  EXPECT_EQ(post("demo/pin", R"({"force":true})").reply->code(), "invalid_argument");
}

TEST_F(ApiRoutesTest, WhatIsNotThereIsNotFound) {
  for (const char* path : {"demo", "demo/explode", "/load", "load", "nope/load"}) {
    EXPECT_EQ(post(path).reply->head->status, 404) << path;
  }
  EXPECT_EQ(call("POST", "/api/requests/{}/cancel", "r-9").reply->code(), "not_found");
  EXPECT_EQ(call("GET", "/api/models/{...}", "demo/load").reply->head->status, 404);
}

TEST_F(ApiRoutesTest, BadBodiesAndArgumentsAreRefused) {
  for (const char* body : {"[", "[]", "{\"wait\":1}", "{\"forse\":true}", "null", "{} {}"}) {
    const Exchange exchange = post("demo/load", body);
    ASSERT_TRUE(exchange.reply->head) << body;
    EXPECT_EQ(exchange.reply->head->status, 400) << body;
  }
  EXPECT_EQ(post("demo/load", "{\"wait\":1}").reply->json().at("error").at("param").as_string(),
            "wait");
  for (const char* query :
       {"since=x", "since=-1", "since=1&since=2", "nope=1", "follow=2", "%zz"}) {
    EXPECT_EQ(call("GET", "/api/events", {}, query).reply->head->status, 400) << query;
  }
}

TEST_F(ApiRoutesTest, EventsAreStreamedAndTheConnectionIsKeptAlive) {
  const Exchange exchange = call("GET", "/api/events", {}, "prefix=load.");
  ASSERT_TRUE(exchange.reply->head);
  EXPECT_EQ(exchange.reply->head->content_type, "text/event-stream");
  served("r-1")->finish({});
  EXPECT_THAT(exchange.reply->text, HasSubstr("\nevent: load.ready\ndata: {\"sequence\":"));
  EXPECT_THAT(exchange.reply->text, StartsWith("id: "));
  EXPECT_THAT(exchange.reply->text, Not(HasSubstr("request.")));
  exchange.reply->text.clear();
  world_.clock.advance(40s);
  EXPECT_EQ(exchange.reply->text, ": alive\n\n: alive\n\n");
  exchange.handler->on_gone();
  world_.clock.settle();
  world_.events.emit_typed(events::LoadStarted{.model = "demo"});
  world_.clock.advance(40s);
  EXPECT_EQ(exchange.reply->text, ": alive\n\n: alive\n\n");
}

TEST_F(ApiRoutesTest, WithoutFollowingTheStreamEnds) {
  world_.events.emit_typed(events::LoadStarted{.model = "demo"});
  const Exchange exchange = call("GET", "/api/events", {}, "follow=0");
  EXPECT_TRUE(exchange.reply->ended);
  EXPECT_THAT(exchange.reply->text, HasSubstr("event: load.started\n"));
}

TEST_F(ApiRoutesTest, ASlowReaderIsDroppedWithALastWord) {
  const Exchange exchange = call("GET", "/api/events", {}, {}, {}, /*room=*/false);
  const std::string long_name(100, 'x');
  for (std::size_t i = 0; i < admin::EventFeed::kMostBehind + 2; ++i) {
    world_.events.emit_typed(events::LoadStarted{.model = long_name});
    if (i == 0) world_.clock.settle();
  }
  EXPECT_FALSE(exchange.reply->ended);
  world_.clock.settle();
  EXPECT_TRUE(exchange.reply->ended);
  EXPECT_THAT(exchange.reply->text, HasSubstr("\n\nevent: events.gap\n")) << "without a number";
  EXPECT_THAT(exchange.reply->text, HasSubstr("event: overflow\n"));
  EXPECT_THAT(exchange.reply->text, EndsWith("\n\n"));
  EXPECT_LT(exchange.reply->text.size(), 3'000U) << "what waits is dropped";
}

TEST_F(ApiRoutesTest, AStreamEndsWithItsKeyAndSaysSo) {
  by_key_ = true;
  const Exchange exchange = call("GET", "/api/events", {});
  EXPECT_FALSE(exchange.reply->ended);
  revoke_keys();
  EXPECT_TRUE(exchange.reply->ended);
  EXPECT_THAT(exchange.reply->text,
              StartsWith("event: unauthenticated\ndata: {\"message\":\"This key "));
}

TEST_F(ApiRoutesTest, ASlowReaderGetsEverythingInOrder) {
  const Exchange exchange = call("GET", "/api/events", {}, {}, {}, /*room=*/false);
  for (int i = 0; i < 5; ++i) {
    world_.events.emit_typed(events::LoadStarted{.model = "m" + std::to_string(i)});
  }
  world_.clock.settle();
  EXPECT_THAT(exchange.reply->text, Not(HasSubstr("\"m1\"")));
  exchange.reply->room = true;
  exchange.handler->on_room();
  world_.clock.settle();
  std::size_t at = 0;
  for (int i = 0; i < 5; ++i) {
    at = exchange.reply->text.find("\"m" + std::to_string(i) + "\"", at);
    EXPECT_NE(at, std::string::npos) << i;
  }
  exchange.handler->on_gone();
  world_.clock.settle();
}

TEST_F(ApiRoutesTest, M6_APlanNamesTheRangeOfItsArguments) {
  for (const char* wrong : {"3", "16777217", "99999999999", "many"}) {
    const Exchange exchange =
        call("GET", "/api/plan", {}, "model=demo&context=" + std::string(wrong));
    ASSERT_TRUE(exchange.reply->head);
    EXPECT_EQ(exchange.reply->head->status, 400U) << wrong;
    EXPECT_THAT(exchange.reply->head->body,
                HasSubstr("from 16 to 16777216, not " + std::string(wrong)));
  }
  const Exchange exchange = call("GET", "/api/plan", {}, "model=demo&sequences=0");
  EXPECT_THAT(exchange.reply->head->body, HasSubstr("from 1 to 1024, not 0"));
}

TEST_F(ApiRoutesTest, MetricsAreText) {
  const Exchange exchange = call("GET", "/metrics", {});
  ASSERT_TRUE(exchange.reply->head);
  EXPECT_EQ(exchange.reply->head->content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(exchange.reply->head->body, HasSubstr("# TYPE berth_instances gauge\n"));
}

TEST(QueryArguments, AreDecoded) {
  const auto arguments = QueryArguments::parse("a=x%20y+z&b=7&c", {"a", "b", "c"});
  ASSERT_TRUE(arguments);
  EXPECT_EQ(arguments->text("a"), "x y z");
  EXPECT_EQ(arguments->number("b", 10)->value(), 7U);
  EXPECT_FALSE(arguments->number("b", 6));
  EXPECT_TRUE(arguments->number("b", 10, 7));
  EXPECT_THAT(arguments->number("b", 10, 8).error().message, HasSubstr("from 8 to 10, not 7"));
  EXPECT_TRUE(*arguments->truth("c", false));
  EXPECT_FALSE(*arguments->number("d", 6));
  EXPECT_TRUE(*arguments->truth("d", true));
}

}  // namespace
}  // namespace berth
