#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/fd.h"

namespace berth::testing {

// Servers that say byte by byte what the test wants, for threads of their own.

inline UniqueFd listen_at_port(std::uint16_t& port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto* generic = reinterpret_cast<sockaddr*>(&to);
  EXPECT_EQ(::bind(fd.get(), generic, sizeof to), 0);
  socklen_t size = sizeof to;
  EXPECT_EQ(::getsockname(fd.get(), generic, &size), 0);
  EXPECT_EQ(::listen(fd.get(), 1), 0);
  port = ntohs(to.sin_port);
  return fd;
}

// The next request: its head, and so much of a body.
inline std::string read_request(int peer, std::size_t body_size) {
  std::string request;
  std::array<char, 4096> part{};
  while (true) {
    const std::size_t end = request.find("\r\n\r\n");
    if (end != std::string::npos && request.size() >= end + 4 + body_size) break;
    const ssize_t got = ::read(peer, part.data(), part.size());
    if (got <= 0) break;
    request.append(part.data(), static_cast<std::size_t>(got));
  }
  return request;
}

// Returns how much of it was taken: less than all where the other end is closed.
inline std::size_t send_all(int peer, std::string_view text) {
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t put = ::send(peer, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (put <= 0) break;
    sent += static_cast<std::size_t>(put);
  }
  return sent;
}

// Answers one request with a text, and returns what came.
inline std::string answer_one(int listener, const std::string& answer, std::size_t body_size) {
  const UniqueFd peer(::accept(listener, nullptr, nullptr));
  std::string request = read_request(peer.get(), body_size);
  send_all(peer.get(), answer);
  return request;
}

}  // namespace berth::testing
