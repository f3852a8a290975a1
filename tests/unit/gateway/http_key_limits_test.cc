// What one key may ask for, over HTTP.

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "http_test_support.h"
#include "supervisor/gateway/auth/key_gate.h"
#include "tests/simulation/sim_clock.h"

namespace berth::gateway {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

const std::string kLocal = " HTTP/1.1\r\nHost: localhost\r\n";
const std::string kKey = "Authorization: Bearer client\r\n";
const std::string kJson = "Content-Type: application/json\r\n";

class HttpKeyLimits : public HttpServerTest {
 protected:
  void serve_with(core::KeyRates rates) {
    gate_.set(rates);
    HttpOptions options;
    options.limits.max_body = 1 << 20;
    options.key_limits = &gate_;
    serve(std::move(options));
  }

  sim::SimClock clock_;  // which stands still
  KeyGate gate_{clock_};
};

TEST_F(HttpKeyLimits, EveryRequestCountsOnceWhateverBecomesOfIt) {
  serve_with({3, 0});
  EXPECT_EQ(status_of(ask("GET /items/x" + kLocal + kKey)), "200");
  EXPECT_EQ(status_of(ask("POST /admin" + kLocal + kKey + kJson)), "403");
  EXPECT_EQ(status_of(ask("POST /echo" + kLocal + kKey + kJson + "Content-Length: 2000000\r\n")),
            "413");
  const std::string over = ask("GET /items/x" + kLocal + kKey);
  EXPECT_EQ(status_of(over), "429") << over;
  EXPECT_TRUE(has(over, "\r\nRetry-After: 20\r\n")) << over;
  EXPECT_TRUE(has(over, R"("code":"rate_limited")")) << over;
  EXPECT_EQ(refused(),
            (std::vector<std::string>{"permission_denied anonymous", "body_too_large anonymous",
                                      "rate_limited anonymous"}));
  // Others, those without a key, and what is open or free.
  EXPECT_EQ(status_of(ask("GET /items/x" + kLocal + "Authorization: Bearer admin\r\n")), "200");
  EXPECT_EQ(status_of(ask("GET /items/x" + kLocal)), "200");
  EXPECT_EQ(status_of(ask("GET /livez" + kLocal + kKey)), "200");
  EXPECT_EQ(status_of(ask("GET /free" + kLocal + kKey)), "200");
}

TEST_F(HttpKeyLimits, NoBodyIsReadForWhatIsOverThem) {
  serve_with({1, 0});
  EXPECT_EQ(status_of(ask("GET /items/x" + kLocal + kKey)), "200");
  RawClient large = client();
  large.send("POST /echo" + kLocal + kKey + kJson + "Content-Length: 1000000\r\n\r\n{");
  EXPECT_EQ(status_of(large.read_all()), "429");
}

TEST_F(HttpKeyLimits, APlaceIsGivenBackHoweverARequestEnds) {
  serve_with({0, 1});
  const std::string wait = "GET /wait" + kLocal + kKey + "\r\n";
  const auto is_full = [this] { return status_of(ask("GET /items/x" + kLocal + kKey)) == "429"; };
  RawClient asking = client();
  // Answered.
  asking.send(wait);
  Arrived one = next();
  EXPECT_TRUE(is_full());
  one.reply->send({});
  EXPECT_EQ(status_of(asking.read_answer()), "200");
  EXPECT_FALSE(is_full());
  // As a stream, to its end.
  asking.send(wait);
  one = next();
  one.reply->begin({});
  one.reply->write("piece");
  asking.read_until("piece");
  EXPECT_TRUE(is_full());
  one.reply->end();
  asking.read_until("0\r\n\r\n");
  EXPECT_FALSE(is_full());
  // Refused behind its body.
  RawClient cut = client();
  cut.send("POST /echo" + kLocal + kKey + kJson +
           "Content-Length: 9\r\nExpect: 100-continue\r\n\r\n");
  cut.read_until("100 Continue\r\n\r\n");
  EXPECT_TRUE(is_full());
  cut.end_sending();
  EXPECT_EQ(status_of(cut.read_all()), "400");
  EXPECT_FALSE(is_full());
  // The client hangs up.
  asking.send(wait);
  one = next();
  EXPECT_TRUE(is_full());
  asking.close();
  EXPECT_TRUE(one.handler->wait_for_gone());
  EXPECT_FALSE(is_full());
}

TEST_F(HttpKeyLimits, WhoHangsUpKeepsHisPlaceWhileThePoolWorksForHim) {
  gate_.set({0, 1});
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> job;
  HttpOptions options;
  options.key_limits = &gate_;
  options.run_blocking = [&](std::function<void()> given) {
    const std::lock_guard lock(mutex);
    job = std::move(given);
    changed.notify_all();
  };
  serve(std::move(options));
  const auto is_full = [this] { return status_of(ask("GET /items/x" + kLocal + kKey)) == "429"; };
  RawClient large = client();
  large.send("POST /echo" + kLocal + kKey + kJson + "Content-Length: 1000000\r\n\r\n" +
             std::string(1'000'000, 'x'));
  std::function<void()> work;
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, 60s, [&] { return job != nullptr; }));
    work = std::exchange(job, nullptr);
  }
  large.end_sending();
  large.read_all();
  EXPECT_TRUE(is_full()) << "the server has noticed, and his body is still worked on";
  work();
  work = nullptr;
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (is_full() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_FALSE(is_full());
}

}  // namespace
}  // namespace berth::gateway
