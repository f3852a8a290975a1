// What one client may take of time and memory.

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "http_test_support.h"
#include "supervisor/gateway/http/body_budget.h"
#include "supervisor/gateway/http/http_endpoint.h"
#include "supervisor/gateway/http/mailbox.h"

namespace berth::gateway {
namespace {

using namespace std::chrono_literals;

const std::string kEcho =
    "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
const std::string kPostWait =
    "POST /wait HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";

// A pool whose one thread works only when the test lets it.
class HeldPool {
 public:
  HeldPool() : thread_([this] { work(); }) {}
  HeldPool(const HeldPool&) = delete;
  HeldPool& operator=(const HeldPool&) = delete;
  ~HeldPool() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

  void run(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    changed_.notify_all();
  }
  void let_one() {
    const std::lock_guard lock(mutex_);
    ++allowed_;
    changed_.notify_all();
  }
  bool wait_for_jobs(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 30s, [this, count] { return jobs_.size() >= count; });
  }
  std::thread::id id() const { return thread_.get_id(); }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ended_ || (allowed_ > 0 && !jobs_.empty()); });
      if (ended_) return;
      --allowed_;
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  int allowed_ = 0;
  bool ended_ = false;
  std::thread thread_;
};

class HttpBounds : public HttpServerTest {
 protected:
  void limit(const std::function<void(HttpLimits&)>& set) {
    HttpOptions options;
    set(options.limits);
    serve(std::move(options));
  }
};

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

TEST_F(HttpBounds, ASlowBodyEnds) {
  limit([](HttpLimits& limits) { limits.body_grace = 100ms; });
  RawClient slow = client();
  slow.send(kEcho + "Content-Length: 100\r\n\r\n{");
  EXPECT_EQ(status_of(slow.read_all()), "408");
  RawClient chunks = client();
  chunks.send(kEcho + "Transfer-Encoding: chunked\r\n\r\n1\r\n{");
  EXPECT_EQ(status_of(chunks.read_all()), "408");
}

TEST_F(HttpBounds, ATruncatedBodyIsSaid) {
  RawClient cut = client();
  cut.send(kEcho + "Content-Length: 100\r\n\r\n{}");
  cut.end_sending();
  const std::string answer = cut.read_all();
  EXPECT_EQ(status_of(answer), "400") << answer;
  EXPECT_TRUE(has(answer, "after 2 bytes")) << answer;
}

TEST_F(HttpBounds, ABodyIsBounded) {
  limit([](HttpLimits& limits) { limits.max_body = 1000; });
  const std::string declared = ask(kEcho + "Content-Length: 1001\r\n");
  EXPECT_EQ(status_of(declared), "413");
  EXPECT_TRUE(has(declared, R"("limit":1000)")) << declared;
  EXPECT_TRUE(ask(kEcho + "Content-Length: 1000\r\n", std::string(1000, 'x')).ends_with("xxx"));
  RawClient chunks = client();
  chunks.send(kEcho + "Transfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 100; ++i) chunks.send("a\r\n0123456789\r\n");
  chunks.send("1\r\nx\r\n0\r\n\r\n");
  EXPECT_EQ(status_of(chunks.read_all()), "413");
  EXPECT_EQ(status_of(ask(kEcho + "Transfer-Encoding: chunked\r\n", "fffffff\r\n")), "413");
}

TEST_F(HttpBounds, AllBodiesTogetherAreBounded) {
  HeldPool pool;
  HttpOptions options;
  options.limits.max_body = 1 << 20;
  options.limits.bodies_in_flight = 0;  // four of the largest, two from one address
  options.limits.small_bodies_in_flight = 4 * BodyBudget::kSmallBody;
  options.limits.body_wait = 100ms;
  options.run_blocking = [&pool](std::function<void()> job) { pool.run(std::move(job)); };
  serve(options);
  const auto request = [](std::size_t size) {
    return kEcho + "Content-Length: " + std::to_string(size) + "\r\n\r\n" + std::string(size, 'x');
  };
  // What waits for the pool is counted.
  RawClient first = client();
  first.send(request(1 << 20));
  RawClient second = client();
  second.send(request(1 << 20));
  ASSERT_TRUE(pool.wait_for_jobs(2));
  RawClient third = client();
  third.send(request(1 << 20));
  const std::string refused = third.read_answer();
  EXPECT_EQ(status_of(refused), "429") << refused;
  EXPECT_TRUE(has(refused, "\r\nRetry-After: 1\r\n")) << refused;
  EXPECT_TRUE(has(refused, R"("code":"queue_full")")) << refused;
  // Small ones have room of their own.
  RawClient modest = client();
  modest.send(request(BodyBudget::kSmallBody / 2));
  EXPECT_EQ(status_of(modest.read_answer()), "200");
  pool.let_one();
  EXPECT_EQ(status_of(first.read_answer()), "200");
  RawClient again = client();
  again.send(request(1 << 20));
  pool.let_one();
  pool.let_one();
  EXPECT_EQ(status_of(again.read_answer()), "200");
  server_.reset();
}

TEST_F(HttpBounds, WhatIsOnlyAnnouncedTakesNothing) {
  limit([](HttpLimits& limits) {
    limits.max_body = 1 << 20;
    limits.bodies_in_flight = 0;
    limits.body_wait = 100ms;
  });
  const std::string head = kEcho + "Content-Length: 1048576\r\n";
  std::vector<RawClient> senders;
  for (int i = 0; i < 16; ++i) {
    senders.push_back(client());
    // So that it is certain to have come as far as the body.
    senders.back().send(head + "Expect: 100-continue\r\n\r\n");
    senders.back().read_until("100 Continue\r\n\r\n");
  }
  RawClient whole = client();
  whole.send(head + "\r\n" + std::string(1 << 20, 'x'));
  EXPECT_EQ(status_of(whole.read_answer()), "200");
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

TEST(BodyBudget, NobodyGetsMoreThanHalf) {
  BodyBudget budget(4 << 20, 4 * BodyBudget::kSmallBody);
  {
    BodyCharge one(budget, "192.0.2.1");
    BodyCharge two(budget, "192.0.2.1");
    BodyCharge other(budget, "192.0.2.2");
    EXPECT_TRUE(one.grow_to(1 << 20));
    EXPECT_TRUE(one.grow_to(2 << 20));
    EXPECT_FALSE(two.grow_to(1 << 20));
    EXPECT_TRUE(two.grow_to(BodyBudget::kSmallBody));
    EXPECT_TRUE(other.grow_to(2 << 20));
    int woken = 0;
    budget.wait([&woken] { ++woken; });
    one.release();
    EXPECT_EQ(woken, 1);
    EXPECT_TRUE(two.grow_to(1 << 20));
    EXPECT_FALSE(other.grow_to(3 << 20));
  }
  EXPECT_TRUE(budget.untouched());
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

TEST_F(HttpBounds, ConnectionsAreBounded) {
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

TEST_F(HttpBounds, WhoKeepsConnectionsKeepsNobodyOut) {
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

TEST_F(HttpBounds, WhoSendsNothingKeepsNobodyOut) {
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

TEST_F(HttpBounds, OneAddressHasHalfOfTheConnections) {
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

TEST_F(HttpBounds, TheEndWaitsForWhatIsBeingReceived) {
  RawClient sender = client();
  sender.send(kEcho + "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  sender.read_until("100 Continue\r\n\r\n");
  EXPECT_FALSE(server_->finish(50ms));
  sender.send("{}");
  EXPECT_EQ(status_of(sender.read_answer()), "200");
  EXPECT_TRUE(server_->finish(30s));
}

TEST_F(HttpBounds, ALargeBodyIsWorkedOnInThePool) {
  HeldPool pool;
  HttpOptions options;
  options.run_blocking = [&pool](std::function<void()> job) { pool.run(std::move(job)); };
  serve(options);
  const std::string body(300 << 10, 'x');
  const std::string request =
      kPostWait + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  RawClient large = client();
  large.send(request);
  pool.let_one();
  Arrived arrived = next();
  EXPECT_EQ(arrived.thread, pool.id());
  EXPECT_EQ(arrived.request.body.size(), body.size());
  arrived.reply->send({.body = "taken"});
  EXPECT_TRUE(large.read_answer().ends_with("taken"));

  // A client that hangs up before the pool has time: nothing is started for him.
  RawClient hasty = client();
  hasty.send(request);
  EXPECT_TRUE(pool.wait_for_jobs(1));
  hasty.close();
  large.send("GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(status_of(large.read_answer()), "200");
  pool.let_one();
  RawClient small = client();
  small.send(kPostWait + "Content-Length: 2\r\n\r\n{}");
  arrived = next();
  EXPECT_NE(arrived.thread, pool.id());
  EXPECT_EQ(arrived.request.body, "{}");
  server_.reset();
}

}  // namespace
}  // namespace berth::gateway
