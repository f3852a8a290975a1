#include "supervisor/gateway/http/http_server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "http_test_support.h"

namespace berth::gateway {
namespace {

TEST_F(HttpServerTest, T94_LiveIsNotReady) {
  EXPECT_EQ(status_of(get("/livez")), "200");
  EXPECT_EQ(status_of(get("/readyz")), "200");
  ready_ = false;
  EXPECT_EQ(status_of(get("/livez")), "200");
  EXPECT_EQ(status_of(get("/readyz")), "503");
}

TEST_F(HttpServerTest, EveryErrorHasItsStatusAndReason) {
  const std::string route = get("/nowhere");
  EXPECT_EQ(status_of(route), "404");
  EXPECT_TRUE(has(route, R"("code":"not_found")")) << route;
  EXPECT_TRUE(has(route, "x-should-retry: false\r\n")) << route;
  const std::string method = ask("POST /livez HTTP/1.1\r\nHost: localhost\r\n");
  EXPECT_EQ(status_of(method), "405");
  EXPECT_TRUE(has(method, "\r\nAllow: GET, HEAD\r\n")) << method;
  const std::string nonsense = client().exchange("\x16\x03\x01 nonsense\r\n\r\n");
  EXPECT_EQ(status_of(nonsense), "400");
  EXPECT_TRUE(has(nonsense, "\r\nX-Request-Id: ")) << nonsense;
  EXPECT_EQ(status_of(get("/livez")), "200");
}

TEST_F(HttpServerTest, AHeadHasNoBody) {
  for (const char* target : {"/nowhere", "/livez"}) {
    const std::string answer =
        ask("HEAD " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n");
    EXPECT_TRUE(has(answer, "\r\nContent-Length: ")) << answer;
    EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
  }
}

TEST_F(HttpServerTest, AnIdGoesInAndOut) {
  EXPECT_TRUE(has(ask("GET /open HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: a.B:1_-\r\n"),
                  "\r\nX-Request-Id: a.B:1_-\r\n"));
  EXPECT_TRUE(has(ask("GET /no HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: mine\r\n"),
                  R"("request_id":"mine")"));
  const std::string bad = ask("GET /open HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: a b\r\n");
  EXPECT_EQ(status_of(bad), "400");
  EXPECT_TRUE(has(bad, R"("param":"X-Request-Id")")) << bad;
  EXPECT_FALSE(has(bad, "X-Request-Id: a b")) << bad;
}

TEST_F(HttpServerTest, ARouteTakesItsArgumentsDecoded) {
  EXPECT_TRUE(get("/items/org%2Fmodel%20%C3%A9").ends_with("\r\n\r\norg/model \xC3\xA9"));
  EXPECT_EQ(status_of(get("/items/")), "404");
  EXPECT_EQ(status_of(get("/items/a/b")), "404");
  EXPECT_EQ(status_of(get("/items/%zz")), "400");
  EXPECT_EQ(status_of(get("/items/%FF")), "400");
  EXPECT_EQ(status_of(get("/items/%00")), "400");
}

TEST_F(HttpServerTest, ABodyComesWholeOrInChunks) {
  const std::string head =
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
  EXPECT_TRUE(ask(head + "Content-Length: 5\r\n", "hello").ends_with("\r\n\r\nhello"));
  EXPECT_TRUE(ask(head + "Transfer-Encoding: chunked\r\n",
                  "3\r\nhel\r\n2;note=1\r\nlo\r\n0\r\nTrailer: x\r\n\r\n")
                  .ends_with("\r\n\r\nhello"));
  RawClient polite = client();
  polite.send(head + "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(polite.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  polite.send("{}");
  EXPECT_TRUE(polite.read_answer().ends_with("\r\n\r\n{}"));
}

TEST_F(HttpServerTest, AConnectionIsKept) {
  RawClient keeping = client();
  keeping.send(
      "GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n"
      "HEAD /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"
      "GET /items/2 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(keeping.read_answer().ends_with("open"));
  EXPECT_EQ(status_of(keeping.read_until("\r\n\r\n")), "200");
  EXPECT_TRUE(keeping.read_answer().ends_with("\r\n\r\n2"));
  const std::string last =
      keeping.exchange("GET /open HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(has(last, "\r\nConnection: close\r\n")) << last;
}

TEST_F(HttpServerTest, AnOldClientGetsOneAnswer) {
  const std::string answer = client().exchange("GET /open HTTP/1.0\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(status_of(answer), "200");
  EXPECT_TRUE(answer.ends_with("\r\n\r\nopen")) << answer;
}

TEST_F(HttpServerTest, WhoEndsHisSendingStillGetsWhatIsThereInAMoment) {
  const std::string brief = "GET /brief HTTP/1.1\r\nHost: localhost\r\n\r\n";
  RawClient half = client();
  half.send(brief + brief);
  half.end_sending();
  for (int i = 0; i < 2; ++i) {
    const Arrived asked = next();
    // The server knows of his end.
    ASSERT_FALSE(asked.handler->wait_for_gone(std::chrono::milliseconds(100)));
    asked.reply->send({.body = "late"});
    EXPECT_TRUE(half.read_answer().ends_with("late"));
  }
  EXPECT_EQ(half.read_all(), "");
}

TEST(HttpServer, AnAddressInUseIsNamed) {
  SystemIdSource ids;
  HttpOptions options;
  options.address = "127.0.0.1:0";
  options.ids = &ids;
  auto first = HttpServer::listen(options);
  ASSERT_TRUE(first);
  options.address = (*first)->address();
  auto second = HttpServer::listen(options);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason, Reason::kConflict);
  EXPECT_TRUE(has(second.error().message, options.address)) << second.error().message;
}

TEST(HttpServer, AWrongAddressIsRefused) {
  SystemIdSource ids;
  for (const char* address :
       {"", "127.0.0.1", "host.example:80", "127.0.0.1:99999", "::1:80", "127.0.0.1:-1", "[::1]"}) {
    HttpOptions options;
    options.address = address;
    options.ids = &ids;
    auto server = HttpServer::listen(options);
    ASSERT_FALSE(server) << address;
    EXPECT_EQ(server.error().reason, Reason::kInvalidArgument) << address;
  }
}

}  // namespace
}  // namespace berth::gateway
