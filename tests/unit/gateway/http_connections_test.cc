// How many connections there may be, and who makes room.

#include <gtest/gtest.h>

#include <string>

#include "http_test_support.h"
#include "supervisor/gateway/http/http_endpoint.h"

namespace berth::gateway {
namespace {

using HttpConnections = HttpServerTest;

TEST_F(HttpConnections, ConnectionsAreBounded) {
  // Two from one address.
  limit([](HttpLimits& limits) { limits.connections = 4; });
  const std::string wait = "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n";
  RawClient first = client();
  RawClient second = client();
  first.send(wait);
  const Arrived one = next();
  second.send(wait);
  const Arrived two = next();
  const std::string refused = client().read_all();
  EXPECT_EQ(status_of(refused), "429") << refused;
  EXPECT_TRUE(has(refused, "\r\nRetry-After: 1\r\n")) << refused;
  // When one ends there is room again.
  one.reply->send({});
  EXPECT_EQ(status_of(first.read_answer()), "200");
  first.close();
  std::string answer;
  for (int i = 0; i < 1000 && status_of(answer) != "200"; ++i) answer = get("/open");
  EXPECT_EQ(status_of(answer), "200");
}

TEST_F(HttpConnections, WhoKeepsConnectionsKeepsNobodyOut) {
  limit([](HttpLimits& limits) { limits.connections = 4; });
  const std::string open = "GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n";
  RawClient older = client();
  older.send(open);
  EXPECT_EQ(status_of(older.read_answer()), "200");
  RawClient newer = client();
  newer.send(open);
  EXPECT_EQ(status_of(newer.read_answer()), "200");
  RawClient third = client();
  third.send(open);
  EXPECT_EQ(status_of(third.read_answer()), "200");
  EXPECT_EQ(older.read_all(), "");
  newer.send(open);
  EXPECT_EQ(status_of(newer.read_answer()), "200");
}

TEST_F(HttpConnections, WhoSendsNothingKeepsNobodyOut) {
  limit([](HttpLimits& limits) { limits.connections = 4; });
  RawClient silent = client();
  RawClient slow = client();
  slow.send("GET /open HTTP/1.1\r\nHost: lo");
  const std::string open = "GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n";
  RawClient third = client();
  third.send(open);
  EXPECT_EQ(status_of(third.read_answer()), "200");
  EXPECT_EQ(silent.read_all(), "");
  RawClient fourth = client();
  fourth.send(open);
  EXPECT_EQ(status_of(fourth.read_answer()), "200");
  EXPECT_EQ(slow.read_all(), "");
  third.send(open);
  EXPECT_EQ(status_of(third.read_answer()), "200");
}

TEST_F(HttpConnections, OneAddressHasHalfOfTheConnections) {
  limit([](HttpLimits& limits) { limits.connections = 4; });
  const std::string wait = "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n";
  RawClient first = client();
  first.send(wait);
  const Arrived one = next();
  RawClient second = client();
  second.send(wait);
  const Arrived two = next();
  EXPECT_EQ(status_of(client().read_all()), "429");
  RawClient other(server_->address(), 0, "127.0.0.2");
  other.send(wait);
  const Arrived three = next();
  three.reply->send({});
  EXPECT_EQ(status_of(other.read_answer()), "200");
}

TEST(NetworkOf, AddressesThatAreOneHostAreCountedAsOne) {
  const auto of = [](const char* text) { return network_of(boost::asio::ip::make_address(text)); };
  EXPECT_EQ(of("192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(of("::ffff:192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
}

}  // namespace
}  // namespace berth::gateway
