#include "tests/fault_worker/http_side.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <thread>
#include <utility>

#include "tests/fault_worker/fault_deeds.h"

namespace berth::fault {
namespace {

constexpr std::size_t kHeadBytes = 64UL << 10U;
constexpr std::size_t kBodyBytes = 4UL << 20U;
constexpr int kBacklog = 64;

std::string response(std::string_view status, std::string_view body) {
  return "HTTP/1.1 " + std::string(status) +
         "\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

// The value of a header, by its name in lower case; empty: it is not there.
std::string header(const std::string& head, const std::string& name) {
  std::string lower = head;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : static_cast<char>(c);
  });
  const auto at = lower.find("\r\n" + name + ":");
  if (at == std::string::npos) return {};
  const auto begin = head.find_first_not_of(' ', at + name.size() + 3);
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

// Reads to the end of the head; what came after it goes to `body`.
bool read_head(int connection, std::string& head, std::string& body) {
  std::array<char, 4096> part{};
  while (head.size() < kHeadBytes) {
    const auto got = ::recv(connection, part.data(), part.size(), 0);
    if (got <= 0) return false;
    head.append(part.data(), static_cast<std::size_t>(got));
    const auto end = head.find("\r\n\r\n");
    if (end == std::string::npos) continue;
    body = head.substr(end + 4);
    head.resize(end + 2);
    return true;
  }
  return false;
}

void read_body(int connection, const std::string& head, std::string& body) {
  const std::string length = header(head, "content-length");
  std::size_t size = 0;
  std::from_chars(length.data(), length.data() + length.size(), size);
  std::array<char, 4096> part{};
  while (body.size() < std::min(size, kBodyBytes)) {
    const auto got = ::recv(connection, part.data(), part.size(), 0);
    if (got <= 0) return;
    body.append(part.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

class HttpSide::Request final : public Answer {
 public:
  explicit Request(int connection) : connection_(connection) {}
  void say(std::uint64_t /*tokens*/) override {}
  void hold() override {
    pollfd fd{connection_, POLLRDHUP, 0};
    ::poll(&fd, 1, -1);
  }

 private:
  int connection_;
};

std::string HttpSide::listen() {
  const auto problem = [](const char* step) { return std::string(step) + ": " + strerror(errno); };
  if (!setup_.socket.empty()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (setup_.socket.size() >= sizeof address.sun_path) return "--socket is too long";
    std::memcpy(&address.sun_path[0], setup_.socket.c_str(), setup_.socket.size());
    socket_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      return problem("bind");
    }
    if (::listen(socket_.get(), kBacklog) != 0) return problem("listen");
  } else {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(setup_.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socket_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      return problem("bind");
    }
    if (::listen(socket_.get(), kBacklog) != 0) return problem("listen");
    socklen_t size = sizeof address;
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    write_all(STDOUT_FILENO, "listening on " + std::to_string(ntohs(address.sin_port)) + "\n");
  }
  std::thread([this] { accept_connections(); }).detach();
  return {};
}

void HttpSide::accept_connections() {
  while (true) {
    const int connection = ::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    std::thread([this, connection] { serve(connection); }).detach();
  }
}

void HttpSide::serve(int connection) {
  const UniqueFd owner(connection);
  std::string head;
  std::string body;
  if (!read_head(connection, head, body)) return;
  read_body(connection, head, body);
  write_all(connection, answer(head, connection));
}

std::string HttpSide::answer(const std::string& head, int connection) {
  if (head.starts_with("GET /health ")) {
    return healthy_ ? response("200 OK", R"({"status":"ok"})")
                    : response("503 Service Unavailable", R"({"status":"loading"})");
  }
  if (!setup_.api_key.empty() && header(head, "authorization") != "Bearer " + setup_.api_key) {
    return response("401 Unauthorized", R"({"error":{"message":"wrong key"}})");
  }
  if (head.starts_with("GET /v1/models ")) {
    return response("200 OK", R"({"object":"list","data":[{"id":"fault","object":"model"}]})");
  }
  if (!head.starts_with("POST ")) return response("404 Not Found", R"({"error":{}})");
  wait_ready();
  Request request(connection);
  actor_.request(*this, request);
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    text = text_;
  }
  const bool chat = head.starts_with("POST /v1/chat/completions");
  if (head.starts_with("POST /v1/embeddings")) {
    return response("200 OK", R"({"object":"list","model":"fault","data":[{"object":"embedding",)"
                              R"("index":0,"embedding":[1,0,0,0]}]})");
  }
  const std::string choice = chat ? R"("message":{"role":"assistant","content":")" + text + "\"}"
                                  : R"("text":")" + text + "\"";
  return response("200 OK", R"({"object":")" +
                                std::string(chat ? "chat.completion" : "text_completion") +
                                R"(","model":"fault","choices":[{"index":0,)" + choice +
                                R"(,"finish_reason":"stop"}]})");
}

void HttpSide::wait_ready() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ready_; });
}

void HttpSide::progress(const std::string& phase, float fraction) {
  write_all(STDERR_FILENO, phase + " " + std::to_string(fraction) + "\n");
}

void HttpSide::ready() {
  const std::lock_guard lock(mutex_);
  ready_ = true;
  changed_.notify_all();
}

void HttpSide::fail(const std::string& failure_class, const std::string& reason) {
  write_all(STDERR_FILENO, failure_class + ": " + reason + "\n");
}

void HttpSide::heartbeats(bool on) {
  healthy_ = on;
}

void HttpSide::set(const Order& order) {
  const std::lock_guard lock(mutex_);
  if (order.name == "text") text_ = order.text;
}

void HttpSide::end() {
  if (!setup_.socket.empty()) ::unlink(setup_.socket.c_str());
}

}  // namespace berth::fault
