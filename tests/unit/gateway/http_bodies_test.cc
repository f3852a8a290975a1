// What the bodies of requests may take of time and memory, and where they are worked on.

#include <gtest/gtest.h>

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

namespace berth::gateway {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

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

using HttpBodies = HttpServerTest;

TEST_F(HttpBodies, ASlowBodyEnds) {
  limit([](HttpLimits& limits) { limits.body_grace = 100ms; });
  RawClient slow = client();
  slow.send(kEcho + "Content-Length: 100\r\n\r\n{");
  EXPECT_EQ(status_of(slow.read_all()), "408");
  RawClient chunks = client();
  chunks.send(kEcho + "Transfer-Encoding: chunked\r\n\r\n1\r\n{");
  EXPECT_EQ(status_of(chunks.read_all()), "408");
}

TEST_F(HttpBodies, ATruncatedBodyIsSaid) {
  RawClient cut = client();
  cut.send(kEcho + "Content-Length: 100\r\n\r\n{}");
  cut.end_sending();
  const std::string answer = cut.read_all();
  EXPECT_EQ(status_of(answer), "400") << answer;
  EXPECT_TRUE(has(answer, "after 2 bytes")) << answer;
}

TEST_F(HttpBodies, ABodyIsBounded) {
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

// In chunks of 8 KiB.
std::string in_chunks(std::size_t size) {
  constexpr std::size_t kChunk = 8192;
  std::string sent = kEcho + "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (std::size_t i = 0; i < size / kChunk; ++i) {
    sent += "2000\r\n" + std::string(kChunk, 'x') + "\r\n";
  }
  return sent;
}

TEST_F(HttpBodies, AnIdleServerTakesTheLargestBodyInChunks) {
  constexpr std::size_t kMost = 4U << 20;
  limit([](HttpLimits& limits) {
    limits.max_body = kMost;
    limits.bodies_in_flight = 0;  // four of the largest, two from one address
    limits.body_wait = 100ms;
  });
  const std::string whole = client().exchange(in_chunks(kMost) + "0\r\n\r\n");
  EXPECT_EQ(status_of(whole), "200") << whole.substr(0, 1000);
  EXPECT_GT(whole.size(), kMost);
  // And is told of a larger one as soon as that is known.
  RawClient larger = client();
  larger.send(in_chunks(kMost) + "1\r\n");
  const std::string refused = larger.read_all();
  EXPECT_EQ(status_of(refused), "413") << refused;
}

TEST_F(HttpBodies, ABareLineFeedBetweenChunksIsRefusedAtOnce) {
  limit([](HttpLimits& limits) { limits.body_grace = 200ms; });  // then 408
  for (const char* body : {"2\n{}\n0\n\n", "2\r\n{}\n", "2\r\n{}\r\n0\n\n", "2\r\n{}\r\n0\r\n\n",
                           "2\r\n{}\r\n0\r\nX: a\n"}) {
    RawClient one = client();
    one.send(kEcho + "Transfer-Encoding: chunked\r\n\r\n" + body);
    const std::string answer = one.read_all();
    EXPECT_EQ(status_of(answer), "400") << body << "\n-> " << answer;
  }
  RawClient inside = client();
  inside.send(kEcho + "Transfer-Encoding: chunked\r\n\r\n4\r\n{\n\n}\r\n0\r\n\r\n");
  EXPECT_EQ(status_of(inside.read_answer()), "200");
}

TEST_F(HttpBodies, AllBodiesTogetherAreBounded) {
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

TEST_F(HttpBodies, WhatIsOnlyAnnouncedTakesNothing) {
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

TEST_F(HttpBodies, TheEndWaitsForWhatIsBeingReceived) {
  RawClient sender = client();
  sender.send(kEcho + "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  sender.read_until("100 Continue\r\n\r\n");
  EXPECT_FALSE(server_->finish(50ms));
  sender.send("{}");
  EXPECT_EQ(status_of(sender.read_answer()), "200");
  EXPECT_TRUE(server_->finish(30s));
}

TEST_F(HttpBodies, ALargeBodyIsWorkedOnInThePool) {
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
