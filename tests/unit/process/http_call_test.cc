#include "supervisor/process/http_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include "common/fd.h"
#include "tests/unit/process/loop.h"
#include "tests/unit/process/raw_server.h"
#include "tests/unit/process/temp_dir.h"

namespace berth::process {
namespace {

using namespace std::chrono_literals;
using testing::answer_one;
using ::testing::HasSubstr;
using testing::listen_at_port;
using testing::run_until;
using testing::TempDir;

class HttpCallTest : public ::testing::Test {
 protected:
  HttpCallTest() : listener_(listen_at_port(address_.port)) {}

  Result<HttpAnswer> call(const HttpRequest& request) {
    std::optional<Result<HttpAnswer>> answer;
    const Timer timer =
        http_call(io_, address_, request, [&](Result<HttpAnswer> got) { answer = std::move(got); });
    EXPECT_FALSE(answer);
    EXPECT_TRUE(run_until(io_, [&] { return answer.has_value(); }));
    return answer ? *std::move(answer) : fail(Reason::kInternal, "no answer");
  }
  Result<HttpAnswer> call_with(const HttpRequest& request, const std::string& answer) {
    std::thread server(
        [&] { request_ = answer_one(listener_.get(), answer, request.body.size()); });
    auto got = call(request);
    server.join();
    return got;
  }

  boost::asio::io_context io_{1};
  HttpAddress address_;
  UniqueFd listener_;
  std::string request_;
};

TEST_F(HttpCallTest, L6_AsksWithTheInstancesOwnKey) {
  HttpRequest request;
  request.path = "/v1/completions";
  request.body = "{\"a\":1}";
  request.key = "secret";
  const auto answer = call_with(
      request, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 200U);
  EXPECT_EQ(answer->body, "abc");
  EXPECT_THAT(request_, HasSubstr("POST /v1/completions HTTP/1.1\r\n"));
  EXPECT_THAT(request_, HasSubstr("Authorization: Bearer secret\r\n"));
  EXPECT_THAT(request_, HasSubstr("\r\n\r\n{\"a\":1}"));
}

TEST_F(HttpCallTest, L6_AnAnswerOfAnotherStatusIsAnAnswer) {
  const auto answer = call_with({.path = "/health"}, "HTTP/1.0 503 No\r\n\r\nloading");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 503U);
  EXPECT_EQ(answer->body, "loading");
  EXPECT_THAT(request_, HasSubstr("GET /health HTTP/1.1\r\n"));
}

TEST_F(HttpCallTest, L6_TheAnswerIsBounded) {
  HttpRequest request{.path = "/"};
  request.most_bytes = 1000;
  const auto answer = call_with(
      request, "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n" + std::string(1001, 'x'));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().reason, Reason::kInternal);
}

TEST_F(HttpCallTest, L6_WhatIsNoHttpIsAnError) {
  const auto answer = call_with({.path = "/"}, "SSH-2.0-OpenSSH\r\n\r\n");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().reason, Reason::kInternal);
}

TEST_F(HttpCallTest, L6_ABrokenConnectionIsAnError) {
  auto answer = call_with({.path = "/"}, "");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().reason, Reason::kWorkerDied);
  answer = call_with({.path = "/"}, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().reason, Reason::kWorkerDied);
  listener_.reset();
  answer = call({.path = "/"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().reason, Reason::kWorkerDied);
  EXPECT_THAT(answer.error().message, HasSubstr("connecting"));
}

TEST_F(HttpCallTest, L6_APeerThatNeverAnswersEndsAtTheDeadline) {
  HttpRequest request{.path = "/"};
  request.deadline = 20ms;
  const auto answer = call(request);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().reason, Reason::kDeadline);
}

TEST_F(HttpCallTest, L7_ARequestMayBeWithoutADeadline) {
  HttpRequest request{.path = "/"};
  request.deadline = {};
  const auto answer = call_with(request, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "x");
}

TEST_F(HttpCallTest, ADroppedCallIsNotAnswered) {
  bool called = false;
  {
    const Timer timer =
        http_call(io_, address_, {.path = "/"}, [&](const auto&) { called = true; });
  }
  io_.run();
  EXPECT_FALSE(called);
}

TEST_F(HttpCallTest, L27_AUnixSocketIsAnAddress) {
  const TempDir dir;
  address_ = {0, dir.file("s")};
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(&to.sun_path[0], address_.socket.c_str(), address_.socket.size());
  listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  ASSERT_EQ(::listen(listener_.get(), 1), 0);
  const auto answer = call_with({.path = "/"}, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "x");
}

}  // namespace
}  // namespace berth::process
