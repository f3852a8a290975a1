#include "supervisor/process/http_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "tests/unit/process/loop.h"
#include "tests/unit/process/raw_server.h"

namespace berth::process {
namespace {

using namespace std::chrono_literals;
using testing::answer_one;
using ::testing::HasSubstr;
using testing::listen_at_port;
using testing::run_until;
using testing::send_all;

struct Sink : HttpStreamSink {
  void on_head(HttpStreamHead got) override {
    EXPECT_FALSE(head);
    head = std::move(got);
  }
  bool on_piece(std::string piece) override {
    EXPECT_TRUE(head);
    EXPECT_FALSE(end);
    EXPECT_FALSE(piece.empty());
    body += piece;
    return body.size() < room;
  }
  void on_end(Status status) override {
    EXPECT_FALSE(end);
    end = std::move(status);
  }
  void forget() {
    head.reset();
    body.clear();
    room = SIZE_MAX;
    end.reset();
  }
  std::optional<HttpStreamHead> head;
  std::string body;
  std::size_t room = SIZE_MAX;
  std::optional<Status> end;
};

// A check whose answer is posted.
class Posted : public Timer::Impl {};

class HttpStreamTest : public ::testing::Test {
 protected:
  HttpStreamTest() : listener_(listen_at_port(address_.port)) {}

  void start(HttpStreamRequest request) {
    stream_ = http_stream(io_, address_, std::move(request), checks(), sink_);
    EXPECT_FALSE(sink_.end);
  }
  CheckConnection checks() {
    return [this](std::function<void(Status)> done) {
      boost::asio::post(io_, [this, done = std::move(done)] {
        ++checked_;
        done(check_);
      });
      return Timer(std::make_unique<Posted>());
    };
  }
  bool ends() {
    return run_until(io_, [&] { return sink_.end.has_value(); });
  }
  // The end of a request that is answered so.
  Status end_of(const std::string& answer, HttpStreamRequest request = {"/", {"{}"}}) {
    sink_.forget();
    std::size_t size = 0;
    for (const std::string& part : request.body) size += part.size();
    std::thread server([&] { request_ = answer_one(listener_.get(), answer, size); });
    start(std::move(request));
    EXPECT_TRUE(ends());
    server.join();
    return sink_.end ? *sink_.end : fail(Reason::kInternal, "no end");
  }

  boost::asio::io_context io_{1};
  HttpAddress address_;
  UniqueFd listener_;
  std::string request_;
  Status check_;
  int checked_ = 0;
  std::atomic<bool> run_done_{false};
  Sink sink_;
  std::unique_ptr<HttpStream> stream_;
};

TEST_F(HttpStreamTest, L27_SendsTheInstancesOwnKeyAndAllPartsOfTheBody) {
  const Status end = end_of(
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
      {"/v1/completions", {"{\"a\":", "1", "}"}, "secret"});
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(sink_.head->status, 200U);
  EXPECT_EQ(sink_.head->content_type, "text/event-stream");
  EXPECT_EQ(sink_.body, "abcde");
  EXPECT_THAT(request_, HasSubstr("POST /v1/completions HTTP/1.1\r\n"));
  EXPECT_THAT(request_, HasSubstr("Authorization: Bearer secret\r\n"));
  EXPECT_THAT(request_, HasSubstr("Content-Length: 7\r\n"));
  EXPECT_THAT(request_, HasSubstr("\r\n\r\n{\"a\":1}"));
  EXPECT_EQ(checked_, 1);
}

TEST_F(HttpStreamTest, L27_NothingIsSentToAStranger) {
  check_ = fail(Reason::kWorkerDied, "port 1 is held by pid 12 (nginx)");
  const Status end = end_of("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().message, "port 1 is held by pid 12 (nginx)");
  EXPECT_EQ(request_, "");
}

TEST_F(HttpStreamTest, L27_EveryFramingIsUnderstood) {
  EXPECT_TRUE(end_of("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"));
  EXPECT_EQ(sink_.body, "abc");
  EXPECT_TRUE(end_of("HTTP/1.0 200 OK\r\n\r\nuntil the end"));
  EXPECT_EQ(sink_.body, "until the end");
  EXPECT_TRUE(end_of("HTTP/1.1 429 No\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_EQ(sink_.head->status, 429U);
  EXPECT_EQ(sink_.head->retry_after, "7");
  EXPECT_TRUE(end_of("HTTP/1.1 204 No\r\n\r\n"));
  EXPECT_TRUE(
      end_of("HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n"
             "Content-Length: 1\r\n\r\nx"));
  EXPECT_EQ(sink_.head->status, 200U);
  EXPECT_EQ(sink_.body, "x");
}

TEST_F(HttpStreamTest, L27_AnAnswerThatBreaksOffIsToldApart) {
  for (const char* const answer :
       {"", "HTTP/1.1 200 O", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc"}) {
    const Status end = end_of(answer);
    ASSERT_FALSE(end) << answer;
    EXPECT_EQ(end.error().reason, Reason::kWorkerDied) << answer;
    EXPECT_EQ(sink_.body, sink_.head ? "abc" : "") << "what came is passed on";
  }
  listener_.reset();
  sink_.forget();
  start({"/", {"{}"}});
  ASSERT_TRUE(ends());
  EXPECT_EQ(sink_.end->error().reason, Reason::kWorkerDied);
}

TEST_F(HttpStreamTest, L27_WhatIsNoHttpIsAnError) {
  for (const std::string& answer :
       {std::string("SSH-2.0-OpenSSH\r\n\r\n"), "HTTP/1.1 200 OK\r\nX: " + std::string(70'000, 'x'),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        std::string("HTTP/1.1 101 Switch\r\n\r\n")}) {
    const Status end = end_of(answer);
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().reason, Reason::kInternal) << end.error().message;
  }
}

// It would be reserved at once.
TEST_F(HttpStreamTest, L27_ALengthIsNotBelieved) {
  const Status end = end_of("HTTP/1.1 200 OK\r\nContent-Length: 9000000000000000000\r\n\r\nabc");
  ASSERT_FALSE(end);
  EXPECT_EQ(sink_.body, "abc");
}

TEST_F(HttpStreamTest, L27_AnAnswerThatComesBeforeAllIsSentCounts) {
  std::thread server([&] {
    const UniqueFd peer(::accept(listener_.get(), nullptr, nullptr));
    testing::read_request(peer.get(), 0);
    send_all(peer.get(), "HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n");
    run_done_.wait(false);
  });
  start({"/", {std::string(64UL << 20U, 'x')}});
  EXPECT_TRUE(ends());
  run_done_ = true;
  run_done_.notify_all();
  server.join();
  ASSERT_TRUE(sink_.head);
  EXPECT_EQ(sink_.head->status, 413U);
}

TEST_F(HttpStreamTest, L27_APausedAnswerIsNotRead) {
  sink_.room = 1000;
  const std::string text(32UL << 20U, 'x');
  std::atomic<std::size_t> taken{0};
  std::thread server([&] {
    const UniqueFd peer(::accept(listener_.get(), nullptr, nullptr));
    testing::read_request(peer.get(), 2);
    send_all(peer.get(), "HTTP/1.1 200 OK\r\n\r\n");
    taken = send_all(peer.get(), text);
  });
  start({"/", {"{}"}});
  EXPECT_TRUE(run_until(io_, [&] { return sink_.body.size() >= 1000; }));
  io_.restart();
  io_.poll();
  EXPECT_LT(sink_.body.size(), 200'000U);
  EXPECT_EQ(taken, 0U) << "the program has to wait";
  sink_.room = SIZE_MAX;
  stream_->resume();
  stream_->resume();
  EXPECT_TRUE(ends());
  server.join();
  EXPECT_EQ(taken, text.size());
  EXPECT_TRUE(*sink_.end);
  EXPECT_EQ(sink_.body.size(), text.size());
}

TEST_F(HttpStreamTest, T31_ADroppedStreamClosesItsConnectionAtOnce) {
  std::atomic<bool> closed{false};
  std::thread server([&] {
    const UniqueFd peer(::accept(listener_.get(), nullptr, nullptr));
    testing::read_request(peer.get(), 2);
    send_all(peer.get(), "HTTP/1.1 200 OK\r\n\r\nabc");
    char byte = 0;
    closed = ::read(peer.get(), &byte, 1) <= 0;
  });
  start({"/", {"{}"}});
  EXPECT_TRUE(run_until(io_, [&] { return sink_.body == "abc"; }));
  stream_.reset();
  server.join();
  EXPECT_TRUE(closed);
  io_.restart();
  io_.run();
  EXPECT_FALSE(sink_.end);
}

TEST_F(HttpStreamTest, M19_ADeadlineEndsAPausedAnswerToo) {
  start({"/", {"{}"}, "", 20ms});  // in the queue of connections that nobody accepts
  ASSERT_TRUE(ends());
  EXPECT_EQ(sink_.end->error().reason, Reason::kDeadline);

  sink_.forget();
  sink_.room = 1;
  std::thread server([&] {
    UniqueFd first(::accept(listener_.get(), nullptr, nullptr));
    const UniqueFd peer(::accept(listener_.get(), nullptr, nullptr));
    first.reset();
    testing::read_request(peer.get(), 2);
    send_all(peer.get(), "HTTP/1.1 200 OK\r\n\r\nabc");
    run_done_.wait(false);
  });
  start({"/", {"{}"}, "", 300ms});
  EXPECT_TRUE(ends());
  run_done_ = true;
  run_done_.notify_all();
  server.join();
  EXPECT_EQ(sink_.end->error().reason, Reason::kDeadline);
}

TEST_F(HttpStreamTest, ADroppedCheckIsNotAnswered) {
  bool dropped = false;
  struct Timed : Timer::Impl {
    explicit Timed(bool& flag) : flag_(flag) {}
    ~Timed() override { flag_ = true; }
    bool& flag_;
  };
  bool asked = false;
  stream_ = http_stream(
      io_, address_, {"/", {"{}"}},
      [&](const std::function<void(Status)>& /*done*/) {
        asked = true;
        return Timer(std::make_unique<Timed>(dropped));
      },
      sink_);
  ASSERT_TRUE(run_until(io_, [&] { return asked; }));
  EXPECT_FALSE(dropped);
  stream_.reset();
  EXPECT_TRUE(dropped);
}

}  // namespace
}  // namespace berth::process
