// What is refused before a handler sees it, and in which order.

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "http_test_support.h"

namespace berth::gateway {
namespace {

using namespace std::chrono_literals;

const std::string kJson = "Content-Type: application/json\r\n";

using HttpChecks = HttpServerTest;

TEST_F(HttpChecks, TheOrderIsHostRouteMethodTypeKeyRoleSize) {
  // Every request has all the faults of those behind it.
  const std::string body = "Content-Length: 99999999999\r\n";
  const std::string key = "Authorization: Bearer wrong\r\n";
  const std::string type = "Content-Type: text/plain\r\n";
  const std::string local = "Host: localhost\r\n";
  EXPECT_EQ(status_of(ask("PUT /nowhere HTTP/1.1\r\nHost: evil.example\r\n" + type + key + body)),
            "403");
  EXPECT_EQ(status_of(ask("POST /nowhere HTTP/1.1\r\nOrigin: http://evil.example\r\n" + local +
                          type + key + body)),
            "403");
  EXPECT_EQ(status_of(ask("PUT /nowhere HTTP/1.1\r\n" + local + type + key + body)), "404");
  EXPECT_EQ(status_of(ask("PUT /admin HTTP/1.1\r\n" + local + type + key + body)), "405");
  EXPECT_EQ(status_of(ask("POST /admin HTTP/1.1\r\n" + local + type + key + body)), "415");
  EXPECT_EQ(status_of(ask("POST /admin HTTP/1.1\r\n" + local + kJson + key + body)), "401");
  const std::string client = "Authorization: Bearer client\r\n";
  EXPECT_EQ(status_of(ask("POST /admin HTTP/1.1\r\n" + local + kJson + client + body)), "403");
  const std::string admin = "Authorization: Bearer admin\r\n";
  EXPECT_EQ(status_of(ask("POST /admin HTTP/1.1\r\n" + local + kJson + admin + body)), "413");
  EXPECT_EQ(status_of(ask("POST /admin HTTP/1.1\r\n" + local + kJson + admin)), "200");
}

TEST_F(HttpChecks, T95_ForeignPagesAreRefused) {
  HttpOptions options;
  options.allowed_hosts = {"berth.lan"};
  options.cors_origins = {"https://page.example", "null"};
  serve(options);
  const auto with = [this](const std::string& host, const std::string& origin) {
    return ask("GET /items/1 HTTP/1.1\r\nHost: " + host + "\r\nOrigin: " + origin + "\r\n");
  };
  EXPECT_EQ(status_of(get("/livez", "evil.example")), "403");
  EXPECT_EQ(status_of(get("/livez", "berth.lan:11500")), "200");
  EXPECT_EQ(status_of(with("localhost:1", "http://localhost:1")), "200");
  EXPECT_EQ(status_of(with("berth.lan", "http://berth.lan:80")), "200");
  for (const char* origin :
       {"http://localhost:2", "https://localhost:1", "http://localhost", "null",
        "http://evil.example", "", "http://localhost:1.evil.example"}) {
    const std::string answer = with("localhost:1", origin);
    EXPECT_EQ(status_of(answer), "403") << origin;
    EXPECT_FALSE(has(answer, "Access-Control")) << answer;
  }
  const std::string listed = with("localhost:1", "https://page.example");
  EXPECT_EQ(status_of(listed), "200");
  EXPECT_TRUE(has(listed, "\r\nAccess-Control-Allow-Origin: https://page.example\r\n")) << listed;
  EXPECT_TRUE(has(listed, "\r\nVary: Origin\r\n")) << listed;
  EXPECT_TRUE(authenticator_.foreign_origin);
}

TEST_F(HttpChecks, T95_OnlyListedPagesMayAskBefore) {
  HttpOptions options;
  options.cors_origins = {"https://page.example"};
  serve(options);
  const std::string ask_before =
      "OPTIONS /echo HTTP/1.1\r\nHost: localhost\r\nAccess-Control-Request-Method: POST\r\n";
  const std::string listed = ask(ask_before + "Origin: https://page.example\r\n");
  EXPECT_EQ(status_of(listed), "204");
  EXPECT_TRUE(has(listed, "\r\nAccess-Control-Allow-Methods: POST\r\n")) << listed;
  EXPECT_FALSE(has(listed, "Content-Length")) << listed;
  EXPECT_EQ(status_of(ask(ask_before + "Origin: https://evil.example\r\n")), "403");
  EXPECT_EQ(status_of(ask(ask_before)), "405");
}

TEST_F(HttpChecks, T95_AWriteIsJsonAlsoWithoutABody) {
  const std::string local = " HTTP/1.1\r\nHost: localhost\r\n";
  EXPECT_EQ(status_of(ask("POST /echo" + local)), "415");
  EXPECT_EQ(status_of(ask("POST /echo" + local +
                              "Content-Type: application/x-www-form-urlencoded\r\n"
                              "Content-Length: 2\r\n",
                          "a=")),
            "415");
  EXPECT_EQ(status_of(ask("POST /echo" + local + "Content-Type: application/jsonp\r\n")), "415");
  EXPECT_EQ(
      status_of(ask("POST /echo" + local + "Content-Type: Application/JSON; charset=utf-8\r\n")),
      "200");
}

TEST_F(HttpChecks, ACompressedBodyIsRefused) {
  const std::string start = "POST /echo HTTP/1.1\r\nHost: localhost\r\n" + kJson;
  for (const char* encoding :
       {"gzip", "identity, br", "identity\r\nContent-Encoding: deflate", "zstd"}) {
    const std::string refused =
        ask(start + "Content-Encoding: " + encoding + "\r\nContent-Length: 2\r\n", "\x1F\x8B");
    EXPECT_EQ(status_of(refused), "415") << refused;
    EXPECT_TRUE(has(refused, R"("code":"unsupported_media_type")")) << refused;
    EXPECT_TRUE(has(refused, "send the body uncompressed")) << refused;
  }
  const std::string plain =
      ask(start + "Content-Encoding: Identity\r\nContent-Length: 2\r\n", "{}");
  EXPECT_EQ(status_of(plain), "200") << plain;
}

TEST_F(HttpChecks, WhoAsksIsToldAsItIs) {
  const std::string start = "GET /items/1 HTTP/1.1\r\nHost: ";
  ask(start + "127.0.0.2:80\r\n");
  EXPECT_TRUE(authenticator_.loopback_host);
  EXPECT_FALSE(authenticator_.forwarded);
  ask(start + "192.168.0.1\r\n");
  EXPECT_FALSE(authenticator_.loopback_host);
  for (const char* header : {"Forwarded: for=1.2.3.4", "X-Forwarded-For: 1.2.3.4",
                             "x-forwarded-proto: https", "Via: 1.1 proxy"}) {
    ask(start + "localhost\r\n" + header + "\r\n");
    EXPECT_TRUE(authenticator_.forwarded) << header;
  }
  EXPECT_EQ(status_of(ask(start + "localhost\r\nAuthorization: Basic YTpi\r\n")), "401");
}

TEST_F(HttpChecks, AShapeThatTwoCouldReadInTwoWaysIsRefused) {
  const std::string start = "POST /echo HTTP/1.1\r\nHost: localhost\r\n" + kJson;
  const std::string end = "\r\n\r\n";
  const std::vector<std::string> requests = {
      start + "Content-Length: 2\r\nContent-Length: 2" + end + "{}",
      start + "Content-Length: 2\r\nContent-Length: 3" + end + "{}",
      start + "Content-Length: 2, 2" + end + "{}",
      start + "Content-Length: +2" + end + "{}",
      start + "Content-Length: 0x2" + end + "{}",
      start + "Content-Length: -2" + end + "{}",
      start + "Content-Length: 99999999999999999999999" + end + "{}",
      start + "Content-Length: 2\r\nTransfer-Encoding: chunked" + end + "0\r\n\r\n",
      start + "Transfer-Encoding: chunked\r\nContent-Length: 2" + end + "0\r\n\r\n",
      start + "Transfer-Encoding: gzip, chunked" + end + "0\r\n\r\n",
      start + "Transfer-Encoding: chunked, identity" + end + "0\r\n\r\n",
      start + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked" + end + "0\r\n\r\n",
      start + "Transfer-Encoding: xchunked" + end + "0\r\n\r\n",
      start + "Transfer-Encoding : chunked" + end + "0\r\n\r\n",
      start + "X: a\r\n folded" + end,
      start + "X: a\r\n\tfolded" + end,
      start + " X: a" + end,
      start + "X : a" + end,
      start + "X" + end,
      start + ": a" + end,
      start + "X: a\nY: b" + end,
      start + "X: a\rb" + end,
      start + "X: a" + std::string(1, '\0') + "b" + end,
      start + "X: a\x7F" + end,
      start + "X\x80: a" + end,
      start + "Expect: something" + end,
      start + "Authorization: Bearer a\r\nAuthorization: Bearer admin" + end,
      "GET /open HTTP/1.1\r\n\r\n",
      "GET /open HTTP/1.1\r\nHost: localhost\r\nHost: localhost" + end,
      "GET /open HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked" + end + "0\r\n\r\n",
      "GET http://other/open HTTP/1.1\r\nHost: localhost" + end,
      "GET localhost:80 HTTP/1.1\r\nHost: localhost" + end,
      "GET ftp://localhost/open HTTP/1.1\r\nHost: localhost" + end,
      "CONNECT localhost:80 HTTP/1.1\r\nHost: localhost" + end,
      "OPTIONS * HTTP/1.1\r\nHost: localhost" + end,
      "GET  /open HTTP/1.1\r\nHost: localhost" + end,
      "GET /open  HTTP/1.1\r\nHost: localhost" + end,
      "GET /open\x01 HTTP/1.1\r\nHost: localhost" + end,
      "GET /op\xC3\xA9n HTTP/1.1\r\nHost: localhost" + end,
      "GET /open HTTP/1.2\r\nHost: localhost" + end,
      "GET /open HTTP/2.0\r\nHost: localhost" + end,
      "GET /open\r\nHost: localhost" + end,
      "G@T /open HTTP/1.1\r\nHost: localhost" + end,
      "GET /open HTTP/1.1 \r\nHost: localhost" + end,
      "\r\n\r\n\r\nGET /open HTTP/1.1\r\nHost: localhost" + end,
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "GET /open HTTP/1.1\nHost: localhost\n\n",
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03", 11),
      start + "Transfer-Encoding: chunked" + end + "x\r\n{}\r\n0\r\n\r\n",
      start + "Transfer-Encoding: chunked" + end + "-2\r\n{}\r\n0\r\n\r\n",
      start + "Transfer-Encoding: chunked" + end + "0x2\r\n{}\r\n0\r\n\r\n",
      start + "Transfer-Encoding: chunked" + end + "3\r\n{}\r\n0\r\n\r\n",
      start + "Transfer-Encoding: chunked" + end + "2\r\n{}XX0\r\n\r\n",
      start + "Transfer-Encoding: chunked" + end + "ffffffffffffffff1\r\n{}\r\n0\r\n\r\n",
      start + "Transfer-Encoding: chunked" + end + "2;a=\nb\r\n{}\r\n0\r\n\r\n",
      start + "Transfer-Encoding: chunked" + end + "2;a=" + std::string(300, 'b') +
          "\r\n{}\r\n0\r\n\r\n",
      start + "Transfer-Encoding: chunked" + end + "2;a=" + std::string(30000, 'b'),
  };
  for (const std::string& request : requests) {
    RawClient one = client();
    one.send(request);
    one.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const std::string answer = one.read_all();
    EXPECT_EQ(status_of(answer), "400") << request << "\n-> " << answer;
    EXPECT_TRUE(has(answer, "\r\nConnection: close\r\n")) << request << "\n-> " << answer;
    EXPECT_EQ(answer.find("\nHTTP/1.1"), std::string::npos) << request << "\n-> " << answer;
  }
  EXPECT_EQ(status_of(get("/livez")), "200");
}

TEST_F(HttpChecks, AHostInTheTargetMayBeTheSameOne) {
  EXPECT_EQ(status_of(ask("GET http://localhost:7/open?x HTTP/1.1\r\nHost: LOCALHOST:7\r\n")),
            "200");
  EXPECT_EQ(status_of(ask("GET http://localhost HTTP/1.1\r\nHost: localhost\r\n")), "404");
}

TEST_F(HttpChecks, ARefusedBodyIsNotRead) {
  const std::string start =
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nAuthorization: x\r\n" + kJson;
  // Large: answered and closed before any of it comes, and nobody is told to go on.
  RawClient large = client();
  large.send(start + "Expect: 100-continue\r\nContent-Length: 50000000\r\n\r\n");
  const std::string answer = large.read_all();
  EXPECT_EQ(status_of(answer), "401") << answer;
  EXPECT_TRUE(has(answer, "\r\nWWW-Authenticate: Bearer\r\n")) << answer;
  EXPECT_TRUE(has(answer, "\r\nConnection: close\r\n"));
  // Small: read over, and the connection goes on.
  RawClient small = client();
  small.send(start + "Content-Length: 5\r\n\r\nhello");
  EXPECT_EQ(status_of(small.read_answer()), "401");
  small.send("GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(status_of(small.read_answer()), "200");
  RawClient odd = client();
  odd.send("GET /open HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_EQ(status_of(odd.read_answer()), "400");
}

TEST_F(HttpChecks, EveryRefusalIsToldWithItsReasonAndWhoWasKnown) {
  HttpOptions options;
  options.limits.max_body = 1000;
  options.limits.header_timeout = 100ms;
  serve(options);
  const std::string local = " HTTP/1.1\r\nHost: localhost\r\n";
  const std::string json = local + "Content-Type: application/json\r\n";
  const auto reason_of = [this](const std::string& answer, const char* status) {
    EXPECT_EQ(status_of(answer), status) << answer;
    const std::vector<std::string> told = refused();
    return told.size() == 1 ? told.front() : std::to_string(told.size()) + " are told";
  };
  EXPECT_EQ(reason_of(get("/open", "evil.example"), "403"), "permission_denied");
  EXPECT_EQ(reason_of(ask("GET /open" + local + "Origin: http://evil.example\r\n"), "403"),
            "permission_denied");
  EXPECT_EQ(reason_of(get("/nowhere"), "404"), "not_found");
  EXPECT_EQ(reason_of(ask("DELETE /open" + json), "405"), "method_not_allowed");
  EXPECT_EQ(reason_of(ask("POST /echo" + local), "415"), "unsupported_media_type");
  EXPECT_EQ(reason_of(ask("GET /items/x" + local + "Authorization: Bearer x\r\n"), "401"),
            "unauthenticated");
  EXPECT_EQ(reason_of(ask("POST /admin" + json), "403"), "permission_denied anonymous");
  EXPECT_EQ(reason_of(ask("POST /echo" + json + "Content-Length: 1001\r\n"), "413"),
            "body_too_large anonymous");
  EXPECT_EQ(
      reason_of(ask("POST /echo" + json + "Transfer-Encoding: chunked\r\n", "fff\r\n"), "413"),
      "body_too_large anonymous");
  EXPECT_EQ(reason_of(client().exchange("GARBAGE\r\n\r\n"), "400"), "invalid_argument");
  EXPECT_EQ(reason_of(client().exchange("GET /" + std::string(20000, 'x')), "431"),
            "headers_too_large");
  EXPECT_EQ(reason_of(client().exchange("GET /open HTTP/1.1\r\n"), "408"), "request_timeout");
  options.limits.connections = 2;  // one from one address
  serve(options);
  RawClient busy = client();
  busy.send("GET /wait" + local + "\r\n");
  const Arrived arrived = next();
  EXPECT_EQ(reason_of(client().read_all(), "429"), "queue_full");
  arrived.reply->send({});
  EXPECT_EQ(status_of(busy.read_answer()), "200");
  EXPECT_TRUE(refused().empty());
}

}  // namespace
}  // namespace berth::gateway
