// What one client may take of time and memory, but for connections and bodies.

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "http_test_support.h"
#include "supervisor/gateway/http/mailbox.h"

namespace berth::gateway {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

using HttpBounds = HttpServerTest;

TEST_F(HttpBounds, AHeaderIsBounded) {
  const std::string start = "GET /open HTTP/1.1\r\nHost: localhost\r\n";
  const std::string large = client().exchange(start + "X: " + std::string(20000, 'x') + "\r\n\r\n");
  EXPECT_EQ(status_of(large), "431") << large;
  EXPECT_EQ(status_of(client().exchange(start + "X: " + std::string(16384, 'x'))), "431");
  EXPECT_EQ(status_of(client().exchange("GET /" + std::string(20000, 'x'))), "431");
  std::string fields;
  for (int i = 0; i < 101; ++i) fields += "X: y\r\n";
  EXPECT_EQ(status_of(client().exchange(start + fields + "\r\n")), "431");
  EXPECT_EQ(status_of(ask(start + "X: " + std::string(15000, 'x') + "\r\n")), "200");
}

TEST_F(HttpBounds, ASlowHeaderEnds) {
  limit([](HttpLimits& limits) { limits.header_timeout = 100ms; });
  RawClient slow = client();
  slow.send("GET /open HTTP/1.1\r\nHost: local");
  const std::string answer = slow.read_all();
  EXPECT_EQ(status_of(answer), "408") << answer;
  EXPECT_TRUE(has(answer, "\r\nConnection: close\r\n"));
  RawClient silent = client();
  EXPECT_EQ(silent.read_all(), "");
}

TEST_F(HttpBounds, AnIdleConnectionEnds) {
  limit([](HttpLimits& limits) { limits.idle_timeout = 100ms; });
  RawClient idle = client();
  idle.send("GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(status_of(idle.read_answer()), "200");
  EXPECT_EQ(idle.read_all(), "");
}

TEST(Mailbox, WhatWasPostedRunsAtTheLatestAtTheEnd) {
  boost::asio::io_context io;
  const auto mailbox = std::make_shared<Mailbox>(io);
  int ran = 0;
  EXPECT_TRUE(mailbox->post([&ran] { ++ran; }));
  mailbox->close();
  EXPECT_EQ(ran, 1);
  EXPECT_FALSE(mailbox->post([&ran] { ++ran; }));
  EXPECT_EQ(io.poll(), 1U);
  EXPECT_EQ(ran, 1);
}

TEST_F(HttpBounds, WhoTakesHisAnswerSlowlyIsGone) {
  limit([](HttpLimits& limits) {
    limits.write_timeout = 200ms;
    limits.answer_bytes_per_second = std::uint64_t{1} << 40;
  });
  constexpr std::size_t kSize = 16U << 20;
  RawClient slow(server_->address(), 4096);
  slow.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const Arrived asked = next();
  asked.reply->send({.body = std::string(kSize, 'x')});
  // He never stops for long, and would have all of it in the end.
  std::size_t taken = 0;
  std::size_t piece = slow.read_some();
  for (; piece > 0; piece = slow.read_some()) {
    taken += piece;
    static_cast<void>(asked.handler->wait_for_gone(10ms));
  }
  EXPECT_LT(taken, kSize);
}

TEST_F(HttpBounds, AllAnswersTogetherAreBounded) {
  limit([](HttpLimits& limits) { limits.answers_in_flight = 24U << 20; });
  const std::string request = "GET /wait HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  constexpr std::size_t kSize = 16U << 20;
  RawClient idle(server_->address(), 4096);
  idle.send(request);
  next().reply->send({.body = std::string(kSize, 'x')});
  idle.read_until("\r\n\r\n");
  RawClient eager = client();
  eager.send(request);
  next().reply->send({.body = std::string(kSize, 'x')});
  EXPECT_GT(eager.read_all().size(), kSize);
  EXPECT_LT(idle.read_all().size(), kSize);
}

}  // namespace
}  // namespace berth::gateway
