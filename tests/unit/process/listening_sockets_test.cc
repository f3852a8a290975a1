#include "supervisor/process/listening_sockets.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

#include "common/fd.h"
#include "tests/unit/process/raw_server.h"

namespace berth::process {
namespace {

std::uint64_t inode_of(int fd) {
  struct stat status {};
  EXPECT_EQ(::fstat(fd, &status), 0);
  return status.st_ino;
}

// On all addresses of that family.
UniqueFd listen_everywhere(int family, std::uint16_t& port) {
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd || ::listen(fd.get(), 1) != 0) return {};
  sockaddr_in6 address{};
  socklen_t size = sizeof address;
  EXPECT_EQ(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  port = ntohs(address.sin6_port);  // where that of IPv4 is, too
  return fd;
}

void expect_one(const std::vector<ListeningSocket>& sockets, int fd) {
  ASSERT_EQ(sockets.size(), 1U);
  EXPECT_EQ(sockets[0].inode, inode_of(fd));
  EXPECT_TRUE(sockets[0].user_known);
  EXPECT_EQ(sockets[0].user, ::getuid());
}

TEST(ListeningSockets, L27_BothWaysToAskTheKernelAgree) {
  std::uint16_t port = 0;
  const UniqueFd loopback = testing::listen_at_port(port);
  for (const ListeningSockets& seen : {listening_at_port(port), listening_at_port_by_proc(port)}) {
    expect_one(seen.loopback, loopback.get());
    EXPECT_TRUE(seen.everywhere.empty());
  }
  for (const int family : {AF_INET, AF_INET6}) {
    const UniqueFd everywhere = listen_everywhere(family, port);
    if (!everywhere) continue;  // a machine without IPv6
    for (const ListeningSockets& seen :
         {listening_at_port(port), listening_at_port_by_proc(port)}) {
      expect_one(seen.everywhere, everywhere.get());
      EXPECT_TRUE(seen.loopback.empty());
    }
  }
}

TEST(ListeningSockets, L27_AConnectionIsNoListener) {
  std::uint16_t port = 0;
  UniqueFd listener = testing::listen_at_port(port);
  const UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  const UniqueFd accepted(::accept(listener.get(), nullptr, nullptr));
  ASSERT_TRUE(accepted);
  listener.reset();
  EXPECT_TRUE(listening_at_port(port).loopback.empty());
  EXPECT_TRUE(listening_at_port_by_proc(port).loopback.empty());
}

}  // namespace
}  // namespace berth::process
