#include "supervisor/gateway/grpc/network_acceptor.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/gateway/grpc/call_peer.h"
#include "supervisor/gateway/grpc/given_connections.h"
#include "tests/unit/gateway/acceptor_support.h"

namespace berth::gateway {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

using testing::kGenerous;
using testing::Taken;

// Sockets to be counted as connections.
class Sockets {
 public:
  int open() {
    sockets_.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return sockets_.back().get();
  }
  void close_first() { sockets_.erase(sockets_.begin()); }

 private:
  std::vector<UniqueFd> sockets_;
};

TEST(GivenConnections, S6_TheFirstOfAUserAreNobodyElses) {
  Sockets sockets;
  GivenConnections given(
      {.most = 10, .most_untrusted = 8, .most_of_owner = 5, .own = 2, .owners = 2});
  // One takes his own two and three beside them; the fourth beside them is another's.
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(given.add(sockets.open(), "1", false)) << i;
  EXPECT_FALSE(given.add(sockets.open(), "1", false));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(given.add(sockets.open(), "2", false)) << i;
  EXPECT_FALSE(given.add(sockets.open(), "2", false));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(given.add(sockets.open(), "root", true)) << i;
}

TEST(GivenConnections, S6_WhatOthersHoldBesideTheirsIsBounded) {
  Sockets sockets;
  GivenConnections given(
      {.most = 10, .most_untrusted = 8, .most_of_owner = 8, .own = 2, .owners = 3});
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(given.add(sockets.open(), "1", false)) << i;
  EXPECT_FALSE(given.add(sockets.open(), "1", false));
  for (const char* other : {"2", "3"}) {
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(given.add(sockets.open(), other, false)) << other;
  }
  EXPECT_FALSE(given.add(sockets.open(), "3", false));
  sockets.close_first();
  EXPECT_TRUE(given.add(sockets.open(), "3", false)) << "one has ended";
}

TEST(GivenConnections, OneThatCannotBeToldApartTakesNoPlace) {
  Sockets sockets;
  GivenConnections given({.most = 1, .most_untrusted = 1, .most_of_owner = 1});
  EXPECT_FALSE(given.add(-1, "1", false));
  EXPECT_TRUE(given.add(sockets.open(), "1", false));
}

sockaddr_storage address_of(const std::string& text) {
  sockaddr_storage address{};
  auto& four = reinterpret_cast<sockaddr_in&>(address);
  auto& six = reinterpret_cast<sockaddr_in6&>(address);
  if (::inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
  } else {
    EXPECT_EQ(::inet_pton(AF_INET6, text.c_str(), &six.sin6_addr), 1) << text;
    six.sin6_family = AF_INET6;
  }
  return address;
}

UniqueFd connect_to(const std::string& from, std::uint16_t port) {
  UniqueFd connection(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own = address_of(from);
  sockaddr_storage there = address_of("127.0.0.1");
  reinterpret_cast<sockaddr_in&>(there).sin_port = htons(port);
  if (::bind(connection.get(), reinterpret_cast<const sockaddr*>(&own), sizeof(sockaddr_in)) != 0 ||
      ::connect(connection.get(), reinterpret_cast<const sockaddr*>(&there), sizeof(sockaddr_in)) !=
          0) {
    return {};
  }
  return connection;
}

TEST(NetworkAcceptor, S6_AHostIsCountedAsOne) {
  const auto network = [](const char* text) { return network_peer_of(address_of(text)).network; };
  EXPECT_EQ(network("10.0.0.1"), network("::ffff:10.0.0.1"));
  EXPECT_NE(network("10.0.0.1"), network("10.0.0.2"));
  EXPECT_EQ(network("2001:db8::1"), network("2001:db8::ffff:1:2"));
  EXPECT_NE(network("2001:db8::1"), network("2001:db8:0:1::1"));
  for (const char* local : {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(network_peer_of(address_of(local)).loopback) << local;
  }
  for (const char* remote : {"10.0.0.127", "::127.0.0.1", "2001:db8::1", "::ffff:10.0.0.1"}) {
    EXPECT_FALSE(network_peer_of(address_of(remote)).loopback) << remote;
  }
}

TEST(NetworkAcceptor, S6_OneAddressNeverTakesAllConnections) {
  Taken taken;
  auto acceptor = NetworkAcceptor::listen(
      {.addresses = {"127.0.0.1:0"},
       .on_connection = [&](UniqueFd connection) { taken.add(std::move(connection)); },
       .local_bounds = {.most = 3, .most_untrusted = 3, .most_of_owner = 2}});
  ASSERT_TRUE(acceptor) << acceptor.error().message;
  ASSERT_TRUE((*acceptor)->start());
  const std::string& address = (*acceptor)->addresses().front();
  const auto port = static_cast<std::uint16_t>(std::stoul(address.substr(address.rfind(':') + 1)));
  const auto is_closed = [](const UniqueFd& connection) {
    char byte = 0;
    return ::read(connection.get(), &byte, 1) == 0;
  };
  std::vector<UniqueFd> open;
  open.push_back(connect_to("127.0.0.2", port));
  taken.count().wait(0);
  open.push_back(connect_to("127.0.0.2", port));
  taken.count().wait(1);
  EXPECT_TRUE(is_closed(connect_to("127.0.0.2", port))) << "half of them";
  open.push_back(connect_to("127.0.0.3", port));
  taken.count().wait(2);
  EXPECT_TRUE(is_closed(connect_to("127.0.0.4", port))) << "all of them";
  taken.close_all();
  open.push_back(connect_to("127.0.0.2", port));
  taken.count().wait(3);
  EXPECT_EQ(taken.count(), 4);
}

SocketAddress place(const std::string& host, std::uint16_t port = 0) {
  SocketAddress made{address_of(host), sizeof(sockaddr_in)};
  reinterpret_cast<sockaddr_in&>(made.bytes).sin_port = htons(port);
  return made;
}

TEST(NetworkAcceptor, ANameMaySayAnAddressTwice) {
  const auto acceptor = NetworkAcceptor::listen(
      {.addresses = {"host:0"},
       .on_connection = {},
       .resolve = [](const std::string& host, const std::string& port) {
         EXPECT_EQ(host + " " + port, "host 0");
         return std::vector{place("127.0.0.1"), place("127.0.0.2"), place("127.0.0.1")};
       }});
  ASSERT_TRUE(acceptor) << acceptor.error().message;
  EXPECT_EQ((*acceptor)->addresses().size(), 1U);
}

// What stands for everybody cannot have the port of another of them.
TEST(NetworkAcceptor, AnyPortIsOneThatIsFreeAtEachAddress) {
  int asked = 0;
  const auto listen = [&](const std::string& port, int taken_until) {
    asked = 0;
    return NetworkAcceptor::listen(
        {.addresses = {"host:" + port},
         .on_connection = {},
         .resolve = [&asked, taken_until](const std::string& /*host*/, const std::string& number) {
           const auto at = static_cast<std::uint16_t>(std::stoul(number));
           std::vector made{place("127.0.0.1", at)};
           if (++asked <= taken_until) made.push_back(place("0.0.0.0", at));
           return made;
         }});
  };
  const auto found = listen("0", 2);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(asked, 3);
  const auto none = listen("0", 1000);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("host:0"), std::string::npos) << none.error().message;
  EXPECT_LT(asked, 100);

  const std::string& address = (*found)->addresses().front();
  EXPECT_FALSE(listen(address.substr(address.rfind(':') + 1), 0)) << "it is taken";
  EXPECT_EQ(asked, 1) << "no other was asked for";
}

}  // namespace
}  // namespace berth::gateway
