#include "supervisor/gateway/http/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <atomic>
#include <string>

#include "common/fd.h"

namespace berth::gateway {
namespace {

// A client that sends bytes as they are and reads until the server closes or has answered.
class RawClient {
 public:
  explicit RawClient(const std::string& address) {
    const std::size_t colon = address.rfind(':');
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
    inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
    fd_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    // A broken server fails the test instead of hanging it.
    const timeval deadline{30, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline);
    const void* target = &to;
    connected_ = ::connect(fd_.get(), static_cast<const sockaddr*>(target), sizeof to) == 0;
  }

  // The whole of what comes back until the server closes.
  std::string exchange(const std::string& request) {
    EXPECT_TRUE(connected_);
    EXPECT_EQ(::send(fd_.get(), request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    std::string answer;
    char chunk[4096];
    for (;;) {
      const ssize_t got = ::recv(fd_.get(), chunk, sizeof chunk, 0);
      if (got <= 0) return answer;
      answer.append(chunk, static_cast<std::size_t>(got));
    }
  }

 private:
  UniqueFd fd_;
  bool connected_ = false;
};

class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = HttpServer::listen({"127.0.0.1:0", [this] { return ready_.load(); }});
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
  }
  std::string get(const std::string& target, const std::string& host = "localhost") {
    return RawClient(server_->address())
        .exchange("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
  }

  std::atomic<bool> ready_{true};
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, T94_LiveIsNotReady) {
  EXPECT_TRUE(get("/livez").starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(get("/readyz").starts_with("HTTP/1.1 200 "));
  ready_ = false;
  EXPECT_TRUE(get("/livez").starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(get("/readyz").starts_with("HTTP/1.1 503 "));
}

TEST_F(HttpServerTest, EveryErrorHasItsStatusAndReason) {
  const std::string route = get("/nowhere");
  EXPECT_TRUE(route.starts_with("HTTP/1.1 404 ")) << route;
  EXPECT_NE(route.find(R"("code":"not_found")"), std::string::npos) << route;
  EXPECT_TRUE(get("/livez", "evil.example").starts_with("HTTP/1.1 403 "));
  RawClient post(server_->address());
  EXPECT_TRUE(post.exchange("POST /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                            "Content-Length: 0\r\n\r\n")
                  .starts_with("HTTP/1.1 405 "));
}

TEST_F(HttpServerTest, WrongRequestsAreAnsweredAndHarmNobody) {
  RawClient nonsense(server_->address());
  EXPECT_TRUE(nonsense.exchange("\x16\x03\x01 nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
  RawClient header(server_->address());
  EXPECT_TRUE(header
                  .exchange("GET /livez HTTP/1.1\r\nHost: localhost\r\nX: " +
                            std::string(20000, 'x') + "\r\n\r\n")
                  .starts_with("HTTP/1.1 431 "));
  RawClient body(server_->address());
  EXPECT_TRUE(body.exchange("POST /livez HTTP/1.1\r\nHost: localhost\r\n"
                            "Content-Length: 100000000\r\n\r\n")
                  .starts_with("HTTP/1.1 413 "));
  EXPECT_TRUE(get("/livez").starts_with("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, ARefusedHeadHasNoBody) {
  RawClient client(server_->address());
  const std::string answer =
      client.exchange("HEAD /nowhere HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 404 ")) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

TEST_F(HttpServerTest, AConnectionIsKept) {
  RawClient client(server_->address());
  const std::string answer = client.exchange(
      "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
      "HEAD /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const std::size_t second = answer.find("HTTP/1.1 200", 5);
  EXPECT_NE(second, std::string::npos) << answer;
}

TEST(HttpServer, AnAddressInUseIsNamed) {
  auto first = HttpServer::listen({"127.0.0.1:0", [] { return true; }});
  ASSERT_TRUE(first);
  const std::string address = (*first)->address();
  auto second = HttpServer::listen({address, [] { return true; }});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason, Reason::kConflict);
  EXPECT_NE(second.error().message.find(address), std::string::npos);
}

TEST(HttpServer, AWrongAddressIsRefused) {
  for (const char* address :
       {"", "127.0.0.1", "host.example:80", "127.0.0.1:99999", "::1:80", "127.0.0.1:-1", "[::1]"}) {
    auto server = HttpServer::listen({address, [] { return true; }});
    ASSERT_FALSE(server) << address;
    EXPECT_EQ(server.error().reason, Reason::kInvalidArgument) << address;
  }
}

}  // namespace
}  // namespace berth::gateway
