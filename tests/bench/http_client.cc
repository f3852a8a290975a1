#include "tests/bench/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>

namespace berth::bench {
namespace {

tl::unexpected<Error> system_failure(std::string_view step, int code) {
  return fail(Reason::kInternal, std::string(step) + ": " + std::generic_category().message(code));
}

}  // namespace

Result<Address> Address::parse(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  Address address;
  if (colon != std::string_view::npos) {
    address.host = std::string(text.substr(0, colon));
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + colon + 1, end, address.port);
    if (parsed.ec == std::errc{} && parsed.ptr == end && address.port != 0) return address;
  }
  return fail(Reason::kInvalidArgument, "HOST:PORT is expected: " + std::string(text));
}

std::string post_request(const Address& address, std::string_view path, std::string_view body) {
  std::string text =
      "POST " + std::string(path) + " HTTP/1.1\r\nHost: " + address.host + ":" +
      std::to_string(address.port) +
      "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n\r\n";
  return text.append(body);
}

Result<Poller> Poller::make() {
  Poller poller;
  poller.epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!poller.epoll_) return system_failure("epoll_create1", errno);
  return poller;
}

Status Poller::connect(Connection& connection, const Address& address) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return system_failure("socket", errno);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(address.port);
  if (::inet_pton(AF_INET, address.host.c_str(), &to.sin_addr) != 1) {
    return fail(Reason::kInvalidArgument, address.host + " is not an IPv4 address");
  }
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): how sockets take addresses
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    return system_failure("connect", errno);
  }
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &connection;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) {
    return system_failure("epoll_ctl", errno);
  }
  connection.answer_.reset();
  connection.unsent_.clear();
  connection.waits_to_send_ = false;
  connection.fd_ = std::move(fd);
  return {};
}

Status Poller::send(Connection& connection, std::string_view bytes) {
  connection.unsent_.append(bytes);
  return flush(connection);
}

void Poller::close(Connection& connection) {
  connection.fd_.reset();  // which also takes it out of the epoll set
}

Status Poller::flush(Connection& connection) {
  std::string& unsent = connection.unsent_;
  while (!unsent.empty()) {
    const ssize_t sent =
        ::send(connection.fd_.get(), unsent.data(), unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) break;
    if (sent < 0) return system_failure("send", errno);
    unsent.erase(0, static_cast<std::size_t>(sent));
  }
  if (unsent.empty() != connection.waits_to_send_) return {};
  connection.waits_to_send_ = !unsent.empty();
  epoll_event event{};
  event.events = unsent.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT;
  event.data.ptr = &connection;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.fd_.get(), &event);
  return {};
}

Status Poller::read(Connection& connection) {
  std::array<char, 65'536> buffer;
  const ssize_t got = ::recv(connection.fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (got < 0) return system_failure("recv", errno);
  if (got == 0) {
    close(connection);
    if (Status ended = connection.answer_.end(); !ended) return ended;
    return connection.on_complete();
  }
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
  if (Status fed = connection.answer_.feed(bytes); !fed) return fed;
  return connection.answer_.complete() ? connection.on_complete() : Status();
}

Status Poller::serve(Connection& connection, std::uint32_t events) {
  if (!connection.open()) return {};  // closed by another one of the same batch
  if ((events & EPOLLOUT) != 0) {
    if (Status flushed = flush(connection); !flushed) return flushed;
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return {};
  return read(connection);
}

Status Poller::run(const std::function<bool()>& done,
                   std::chrono::steady_clock::time_point deadline) {
  std::array<epoll_event, 256> events;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return fail(Reason::kDeadline, "not within the time given");
    }
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 1000);
    if (count < 0 && errno != EINTR) return system_failure("epoll_wait", errno);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      auto& connection = *static_cast<Connection*>(event.data.ptr);
      Status served = serve(connection, event.events);
      if (served) continue;
      close(connection);
      served = connection.on_failure(served.error());
      if (!served) return served;
    }
  }
  return {};
}

}  // namespace berth::bench
