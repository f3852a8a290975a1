#include "http_test_support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

namespace berth::gateway {
namespace {

constexpr auto kDeadline = std::chrono::seconds(30);

std::string complaint(const char* what) {
  return std::string(what) + " did not happen in time";
}

}  // namespace

RawClient::RawClient(const std::string& address, int receive_buffer, const char* from) {
  const std::size_t colon = address.rfind(':');
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
  inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
  fd_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval deadline{std::chrono::seconds(kDeadline).count(), 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline);
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &deadline, sizeof deadline);
  if (receive_buffer > 0) {
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  }
  if (*from != '\0') {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    inet_pton(AF_INET, from, &own.sin_addr);
    const void* source = &own;
    EXPECT_EQ(::bind(fd_.get(), static_cast<const sockaddr*>(source), sizeof own), 0);
  }
  const void* target = &to;
  EXPECT_EQ(::connect(fd_.get(), static_cast<const sockaddr*>(target), sizeof to), 0);
}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void RawClient::hang_up() {
  ::shutdown(fd_.get(), SHUT_RDWR);
}

bool RawClient::more() {
  std::array<char, 16384> chunk{};
  const ssize_t got = ::recv(fd_.get(), chunk.data(), chunk.size(), 0);
  if (got < 0 && errno == ECONNRESET) reset_ = true;
  EXPECT_FALSE(got < 0 && errno == EAGAIN) << complaint("an answer");
  if (got <= 0) return false;
  received_.append(chunk.data(), static_cast<std::size_t>(got));
  return true;
}

std::string RawClient::read_until(std::string_view mark) {
  std::size_t at = received_.find(mark);
  while (at == std::string::npos && more()) at = received_.find(mark);
  if (at == std::string::npos) return std::exchange(received_, {});
  std::string taken = received_.substr(0, at + mark.size());
  received_.erase(0, taken.size());
  return taken;
}

std::string RawClient::read_answer() {
  std::string answer = read_until("\r\n\r\n");
  constexpr std::string_view kLength = "Content-Length: ";
  const std::size_t at = answer.find(kLength);
  if (at == std::string::npos) return answer;
  const std::size_t length = std::stoul(answer.substr(at + kLength.size()));
  while (received_.size() < length && more()) {
  }
  answer += received_.substr(0, length);
  received_.erase(0, length);
  return answer;
}

std::string RawClient::read_all() {
  while (more()) {
  }
  return std::exchange(received_, {});
}

std::size_t RawClient::read_some() {
  if (received_.empty() && !more()) return 0;
  return std::exchange(received_, {}).size();
}

void RawClient::end_sending() {
  ::shutdown(fd_.get(), SHUT_WR);
}

std::string RawClient::exchange(std::string_view request) {
  send(request);
  return read_all();
}

Result<core::Caller> FakeAuthenticator::authenticate(const Peer& peer,
                                                     const Presented& presented) const {
  const std::lock_guard lock(mutex);
  loopback_host = presented.loopback_host;
  foreign_origin = presented.foreign_origin;
  forwarded = presented.forwarded;
  core::Caller caller;
  if (presented.authorization == "Bearer admin") caller.role = core::Role::kAdmin;
  const bool known = presented.authorization == "Bearer admin" ||
                     presented.authorization == "Bearer client" ||
                     (presented.authorization.empty() && peer.loopback);
  if (!known) return fail(Reason::kUnauthenticated, "No such key.");
  if (!presented.authorization.empty()) caller.key = presented.authorization.substr(7);
  return caller;
}

void TestHandler::on_room() {
  const std::lock_guard lock(mutex_);
  ++rooms_;
  changed_.notify_all();
}

void TestHandler::on_gone() {
  const std::lock_guard lock(mutex_);
  EXPECT_FALSE(gone_) << "told twice";
  gone_ = true;
  changed_.notify_all();
}

bool TestHandler::wait_for_room(int times) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kDeadline, [this, times] { return rooms_ >= times; });
}

bool TestHandler::wait_for_gone(std::chrono::milliseconds deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, deadline, [this] { return gone_; });
}

std::vector<Route> HttpServerTest::routes() {
  std::vector<Route> routes = health_routes([this] { return ready_.load(); });
  const auto say = [](std::string text, const std::shared_ptr<Reply>& reply) {
    HttpResponse response;
    response.content_type = "text/plain";
    response.body = std::move(text);
    reply->send(std::move(response));
    return nullptr;
  };
  const auto wait = [this](HttpRequest request, std::shared_ptr<Reply> reply) {
    auto handler = std::make_shared<TestHandler>();
    const std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(request), std::move(reply), handler, std::this_thread::get_id()});
    arrived_.notify_all();
    return handler;
  };
  routes.push_back({"GET", "/open", Access::kOpen,
                    [say](const HttpRequest&, const std::shared_ptr<Reply>& reply) {
                      return say("open", reply);
                    }});
  routes.push_back(routes.back());
  routes.back().pattern = "/free";
  routes.back().access = Access::kClient;
  routes.back().limited = false;
  routes.push_back({"GET", "/items/{}", Access::kClient,
                    [say](const HttpRequest& request, const std::shared_ptr<Reply>& reply) {
                      return say(request.arguments.at(0), reply);
                    }});
  routes.push_back({"POST", "/echo", Access::kClient,
                    [say](const HttpRequest& request, const std::shared_ptr<Reply>& reply) {
                      return say(request.body, reply);
                    }});
  routes.push_back({"GET", "/wait", Access::kClient, wait});
  routes.push_back({"POST", "/wait", Access::kClient, wait});
  routes.push_back({"GET", "/brief", Access::kClient, wait});
  routes.back().brief = true;
  routes.push_back({"POST", "/admin", Access::kAdmin,
                    [say](const HttpRequest&, const std::shared_ptr<Reply>& reply) {
                      return say("done", reply);
                    }});
  return routes;
}

void HttpServerTest::serve(HttpOptions options) {
  server_.reset();
  if (options.address.empty()) options.address = "127.0.0.1:0";
  options.routes = routes();
  options.authenticator = &authenticator_;
  options.ids = &ids_;
  options.on_refused = [this](const HttpRefusal& one) {
    std::string line(reason_info(one.why.reason).name);
    if (one.caller != nullptr) line += " " + one.caller->tenant;
    const std::lock_guard lock(mutex_);
    refused_.push_back(one.id.empty() ? "no id" : std::move(line));
  };
  auto server = HttpServer::listen(std::move(options));
  ASSERT_TRUE(server) << server.error().message;
  server_ = *std::move(server);
}

void HttpServerTest::limit(const std::function<void(HttpLimits&)>& set) {
  HttpOptions options;
  set(options.limits);
  serve(std::move(options));
}

Arrived HttpServerTest::next() {
  std::unique_lock lock(mutex_);
  const bool came = arrived_.wait_for(lock, kDeadline, [this] { return !waiting_.empty(); });
  EXPECT_TRUE(came) << complaint("a request");
  if (!came) return {};
  Arrived first = std::move(waiting_.front());
  waiting_.erase(waiting_.begin());
  return first;
}

std::string HttpServerTest::ask(const std::string& head, const std::string& body) {
  return client().exchange(head + "Connection: close\r\n\r\n" + body);
}

std::string HttpServerTest::get(const std::string& target, const std::string& host) {
  return ask("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n");
}

std::vector<std::string> HttpServerTest::refused() {
  const std::lock_guard lock(mutex_);
  return std::exchange(refused_, {});
}

std::string status_of(const std::string& answer) {
  return answer.size() < 12 ? "none: " + answer : answer.substr(9, 3);
}

bool has(const std::string& answer, std::string_view part) {
  return answer.find(part) != std::string::npos;
}

}  // namespace berth::gateway
