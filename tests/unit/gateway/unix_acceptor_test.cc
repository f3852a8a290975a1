#include "supervisor/gateway/grpc/unix_acceptor.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <utility>

#include "supervisor/gateway/grpc/call_peer.h"
#include "tests/unit/gateway/acceptor_support.h"

namespace berth::gateway {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

using testing::connect_to;
using testing::Folder;
using testing::kGenerous;
using testing::Taken;

TEST(CallPeer, S6_LoopbackIsToldByTheAddress) {
  EXPECT_TRUE(network_peer("ipv4:127.0.0.1:4711").loopback);
  EXPECT_TRUE(network_peer("ipv4:127.8.9.10:4711").loopback);
  EXPECT_TRUE(network_peer("ipv6:%5B::1%5D:4711").loopback);
  EXPECT_TRUE(network_peer("ipv6:[::1]:4711").loopback);
  EXPECT_TRUE(network_peer("ipv6:%5B::ffff:127.0.0.1%5D:4711").loopback);
  for (const char* name : {"ipv4:10.0.0.1:4711", "ipv6:%5B2001:db8::1%5D:4711", "",
                           "unix:", "ipv4:", "ipv4:127.evil.example:1", "vsock:2:1"}) {
    EXPECT_FALSE(network_peer(name).loopback) << name;
    EXPECT_FALSE(network_peer(name).uid) << name;
    EXPECT_FALSE(network_peer(name).admin) << name;
  }
}

TEST(UnixAcceptor, S6_TheKernelTellsWhoConnects) {
  const Folder folder;
  const std::string path = folder.file("s");
  std::promise<SocketPeer> seen;
  const auto acceptor =
      UnixAcceptor::listen({.paths = {path},
                            .mode = 0666,
                            .on_connection = [&](UniqueFd /*connection*/, const SocketPeer& peer) {
                              seen.set_value(peer);
                            }});
  ASSERT_TRUE(acceptor) << acceptor.error().message;
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0666U);
  const UniqueFd connection = connect_to(path);
  ASSERT_TRUE(connection);
  std::future<SocketPeer> told = seen.get_future();
  ASSERT_EQ(told.wait_for(kGenerous), std::future_status::ready);
  const SocketPeer peer = told.get();
  EXPECT_EQ(peer.uid, ::geteuid());
  EXPECT_NE(std::ranges::find(peer.groups, ::getegid()), peer.groups.end());
}

TEST(UnixAcceptor, ThereIsABoundThatConnectionsLeaveWithTheirEnd) {
  const Folder folder;
  const std::string path = folder.file("s");
  Taken taken;
  const auto acceptor = UnixAcceptor::listen(
      {.paths = {path},
       .mode = 0600,
       .on_connection = [&](UniqueFd connection,
                            const SocketPeer&) { taken.add(std::move(connection)); },
       .bounds = {.most = 2, .most_untrusted = 2, .most_of_owner = 2}});
  ASSERT_TRUE(acceptor);
  const UniqueFd first = connect_to(path);
  taken.count().wait(0);
  const UniqueFd second = connect_to(path);
  taken.count().wait(1);
  const UniqueFd third = connect_to(path);
  char byte = 0;
  EXPECT_EQ(::read(third.get(), &byte, 1), 0) << "it is closed";
  taken.close_first();
  const UniqueFd fourth = connect_to(path);
  taken.count().wait(2);
  EXPECT_EQ(taken.count(), 3);
}

TEST(UnixAcceptor, ItsEndRemovesTheSockets) {
  const Folder folder;
  auto acceptor = UnixAcceptor::listen(
      {.paths = {folder.file("a"), folder.file("b")}, .mode = 0600, .on_connection = {}});
  ASSERT_TRUE(acceptor);
  EXPECT_TRUE(std::filesystem::exists(folder.file("b")));
  acceptor->reset();
  EXPECT_FALSE(std::filesystem::exists(folder.file("a")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("b")));
}

TEST(UnixAcceptor, ASocketThatCannotBeMadeIsNamed) {
  const Folder folder;
  const std::string path = folder.file("missing/s");
  const auto acceptor = UnixAcceptor::listen({.paths = {path}, .mode = 0600, .on_connection = {}});
  ASSERT_FALSE(acceptor);
  EXPECT_NE(acceptor.error().message.find(path), std::string::npos);
}

TEST(UnixAcceptor, NobodyKeepsOutThoseWhoAreTrusted) {
  const Folder folder;
  const std::string path = folder.file("s");
  Taken taken;
  std::atomic<bool> trusted{false};
  const auto acceptor = UnixAcceptor::listen(
      {.paths = {path},
       .mode = 0600,
       .on_connection = [&](UniqueFd connection,
                            const SocketPeer&) { taken.add(std::move(connection)); },
       .trusted = [&](const SocketPeer& /*peer*/) { return trusted.load(); },
       .bounds = {.most = 3, .most_untrusted = 2, .most_of_owner = 2}});
  ASSERT_TRUE(acceptor);
  const UniqueFd first = connect_to(path);
  taken.count().wait(0);
  const UniqueFd second = connect_to(path);
  taken.count().wait(1);
  const UniqueFd third = connect_to(path);
  char byte = 0;
  EXPECT_EQ(::read(third.get(), &byte, 1), 0) << "it is closed";
  trusted = true;
  const UniqueFd fourth = connect_to(path);
  taken.count().wait(2);
  EXPECT_EQ(taken.count(), 3);
}

}  // namespace
}  // namespace berth::gateway
