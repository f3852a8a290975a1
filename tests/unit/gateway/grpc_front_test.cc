#include <arpa/inet.h>
#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "berth/v1/inference.grpc.pb.h"
#include "supervisor/gateway/grpc/call_gate.h"
#include "supervisor/gateway/grpc/call_peer.h"
#include "supervisor/gateway/grpc/given_connections.h"
#include "supervisor/gateway/grpc/grpc_server.h"
#include "supervisor/gateway/grpc/network_acceptor.h"
#include "supervisor/gateway/grpc/peer_servers.h"
#include "supervisor/gateway/grpc/unix_acceptor.h"
#include "tests/simulation/sim_clock.h"

namespace berth::gateway {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

constexpr auto kGenerous = 60s;

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "bgrpc.XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

UniqueFd connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(&address.sun_path[0], path.c_str(), path.size());
  UniqueFd connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return {};
  return connection;
}

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

// Connections that were accepted, and are kept open.
class Taken {
 public:
  void add(UniqueFd connection) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(connection));
    ++count_;
    count_.notify_all();
  }
  void close_first() {
    const std::lock_guard lock(mutex_);
    all_.erase(all_.begin());
  }
  void close_all() {
    const std::lock_guard lock(mutex_);
    all_.clear();
  }
  // Of all that ever were.
  [[nodiscard]] const std::atomic<int>& count() const { return count_; }

 private:
  std::mutex mutex_;
  std::vector<UniqueFd> all_;
  std::atomic<int> count_{0};
};

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

// Who has ended, for another thread.
class Ends {
 public:
  void add(std::uint32_t uid) {
    const std::lock_guard lock(mutex_);
    uids_.push_back(uid);
    changed_.notify_all();
  }
  // The first so many.
  std::vector<std::uint32_t> wait(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kGenerous, [&] { return uids_.size() >= count; });
    return uids_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint32_t> uids_;
};

// Notes its end, which waits for `may_end` where there is one.
class NotingServer : public PeerServer {
 public:
  NotingServer(std::uint32_t uid, Ends& ends, std::set<std::uint32_t>& busy,
               std::shared_future<void> may_end = {})
      : uid_(uid), ends_(ends), busy_(busy), may_end_(std::move(may_end)) {}
  NotingServer(const NotingServer&) = delete;
  NotingServer& operator=(const NotingServer&) = delete;
  ~NotingServer() override {
    if (may_end_.valid()) may_end_.wait_for(kGenerous);
    ends_.add(uid_);
  }
  void take(UniqueFd /*connection*/) override { used_ = Time::clock::now(); }
  [[nodiscard]] Time last_used() const override { return used_; }
  [[nodiscard]] bool busy() const override { return busy_.contains(uid_); }
  void shutdown(std::chrono::system_clock::time_point /*until*/) override {}

 protected:
  [[nodiscard]] Ends& ends() { return ends_; }
  [[nodiscard]] std::uint32_t uid() const { return uid_; }

 private:
  const std::uint32_t uid_;
  Ends& ends_;
  std::set<std::uint32_t>& busy_;
  const std::shared_future<void> may_end_;
  Time used_{};
};

TEST(PeerServers, S6_EachPeerHasItsOwnAndThereIsABound) {
  std::vector<std::uint32_t> made;
  Ends ends;
  std::set<std::uint32_t> busy;
  PeerServers servers(3, [&](const Peer& peer) {
    made.push_back(*peer.uid);
    return std::make_unique<NotingServer>(*peer.uid, ends, busy);
  });
  for (const std::uint32_t uid : {1U, 2U, 1U, 3U}) servers.take({}, {.uid = uid});
  EXPECT_EQ(made, (std::vector<std::uint32_t>{1, 2, 3}));
  servers.take({}, {.uid = 2});
  servers.take({}, {.uid = 4});
  EXPECT_EQ(ends.wait(1), (std::vector<std::uint32_t>{1})) << "the one used least recently";
  EXPECT_EQ(servers.size(), 3U);
}

TEST(PeerServers, NobodysCallsEndForAnotherPeer) {
  std::vector<std::uint32_t> made;
  Ends ends;
  std::set<std::uint32_t> busy{1, 2};
  PeerServers servers(3, [&](const Peer& peer) {
    made.push_back(*peer.uid);
    return std::make_unique<NotingServer>(*peer.uid, ends, busy);
  });
  for (const std::uint32_t uid : {1U, 2U, 3U, 4U}) servers.take({}, {.uid = uid});
  EXPECT_EQ(ends.wait(1), (std::vector<std::uint32_t>{3}));
  busy.insert(4);
  servers.take({}, {.uid = 5});
  EXPECT_EQ(made, (std::vector<std::uint32_t>{1, 2, 3, 4})) << "each has calls";
  busy.erase(1);
  servers.take({}, {.uid = 5});
  EXPECT_EQ(made.back(), 5U);
  EXPECT_EQ(ends.wait(2), (std::vector<std::uint32_t>{3, 1}));
}

TEST(PeerServers, S6_ClientsTakeNoAdminsPlace) {
  Ends ends;
  std::set<std::uint32_t> busy{0, 1, 2};
  std::vector<std::uint32_t> made;
  PeerServers servers(2, [&](const Peer& peer) {
    made.push_back(*peer.uid);
    return std::make_unique<NotingServer>(*peer.uid, ends, busy);
  });
  servers.take({}, {.uid = 1});
  servers.take({}, {.uid = 2});
  servers.take({}, {.uid = 3});
  EXPECT_EQ(made, (std::vector<std::uint32_t>{1, 2}));
  servers.take({}, {.uid = 0, .admin = true});
  // The same user as an admin is another peer: he was not a member of the group before.
  servers.take({}, {.uid = 2, .admin = true});
  EXPECT_EQ(made, (std::vector<std::uint32_t>{1, 2, 0, 2}));
  EXPECT_EQ(servers.size(), 4U);
}

TEST(PeerServers, NobodyWaitsForOneThatEnds) {
  Ends ends;
  std::set<std::uint32_t> busy;
  std::promise<void> may_end;
  const std::shared_future<void> ended = may_end.get_future().share();
  std::uint32_t made = 0;
  PeerServers servers(1, [&](const Peer& peer) {
    ++made;
    return std::make_unique<NotingServer>(*peer.uid, ends, busy, ended);
  });
  for (std::uint32_t uid = 1; uid <= 100; ++uid) servers.take({}, {.uid = uid});
  EXPECT_GT(made, 2U);
  EXPECT_LT(made, 100U) << "without a bound of those that end";
  may_end.set_value();
  ends.wait(made - 1);
  servers.take({}, {.uid = 101});
  EXPECT_EQ(servers.size(), 1U);
}

// Shuts down when so many others have begun to.
class CompanionableServer : public NotingServer {
 public:
  CompanionableServer(std::uint32_t uid, Ends& ends, std::set<std::uint32_t>& busy, Ends& begun,
                      std::size_t others)
      : NotingServer(uid, ends, busy), begun_(begun), others_(others) {}
  void shutdown(std::chrono::system_clock::time_point /*until*/) override {
    begun_.add(uid());
    if (begun_.wait(others_).size() >= others_) ends().add(uid());
  }

 private:
  Ends& begun_;
  const std::size_t others_;
};

TEST(PeerServers, L29_AllShutDownInTheSameTime) {
  Ends ends;
  Ends begun;
  std::set<std::uint32_t> busy;
  PeerServers servers(3, [&](const Peer& peer) {
    return std::make_unique<CompanionableServer>(*peer.uid, ends, busy, begun, 3);
  });
  for (const std::uint32_t uid : {1U, 2U, 3U}) servers.take({}, {.uid = uid});
  servers.shutdown(std::chrono::system_clock::now());
  EXPECT_EQ(ends.wait(3).size(), 3U);
}

TEST(PeerServers, OneThatCannotBeMadeCostsItsConnectionAlone) {
  int tries = 0;
  PeerServers servers(3, [&](const Peer& /*peer*/) {
    ++tries;
    return std::unique_ptr<PeerServer>();
  });
  servers.take({}, {.uid = 1});
  servers.take({}, {.uid = 1});
  EXPECT_EQ(tries, 2);
  EXPECT_EQ(servers.size(), 0U);
}

// Says in a model's name who calls.
class WhoService : public v1::Inference::CallbackService {
 public:
  explicit WhoService(rpc::CallAccess access) : access_(std::move(access)) {}
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const v1::ListModelsRequest* /*request*/,
                                       v1::ListModelsResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const Result<core::Caller> caller = access_.caller_of(*context);
    if (!caller) {
      rpc::finish_badly(*context, *reactor, rpc::detail_for(access_, {}, caller.error(), {}),
                        caller.error());
      return reactor;
    }
    if (const Status admitted = rpc::admit(access_, *context, caller); !admitted) {
      rpc::finish_badly(*context, *reactor, rpc::detail_for(access_, *caller, admitted.error(), {}),
                        admitted.error());
      return reactor;
    }
    response->add_models()->set_name(caller->tenant);
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* context,
                                     const v1::TokenizeRequest* /*request*/,
                                     v1::TokenizeResponse* /*response*/) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  inline static std::atomic<int> counting{0};
  // Goes on until its client is gone, whoever calls.
  grpc::ServerUnaryReactor* CountTokens(grpc::CallbackServerContext* /*context*/,
                                        const v1::TokenizeRequest* /*request*/,
                                        v1::CountTokensResponse* /*response*/) override {
    class Endless : public grpc::ServerUnaryReactor {
     public:
      Endless() {
        ++counting;
        counting.notify_all();
      }
      void OnCancel() override { Finish(grpc::Status::CANCELLED); }
      void OnDone() override { delete this; }  // NOLINT(cppcoreguidelines-owning-memory)
    };
    return std::make_unique<Endless>().release();
  }
  // Goes on until its client is gone.
  grpc::ServerWriteReactor<v1::GenerateEvent>* Generate(
      grpc::CallbackServerContext* context, const v1::GenerateRequest* /*request*/) override {
    class Endless : public grpc::ServerWriteReactor<v1::GenerateEvent> {
     public:
      Endless() { StartSendInitialMetadata(); }
      void OnCancel() override { Finish(grpc::Status::CANCELLED); }
      void OnDone() override { delete this; }  // NOLINT(cppcoreguidelines-owning-memory)
    };
    const Result<core::Caller> caller = access_.caller_of(*context);
    EXPECT_TRUE(rpc::admit(access_, *context, caller));
    return std::make_unique<Endless>().release();
  }

 private:
  const rpc::CallAccess access_;
};

class TellingAuthenticator : public Authenticator {
 public:
  [[nodiscard]] Result<core::Caller> authenticate(const Peer& peer,
                                                  const Presented& said) const override {
    ++asked;
    asked.notify_all();
    if (said.authorization == "Bearer wrong") {
      return fail(Reason::kUnauthenticated, "That key is not known.");
    }
    std::string who = peer.uid ? "uid:" + std::to_string(*peer.uid) : "network";
    if (peer.admin) who += " admin";
    if (peer.loopback) who += " loopback";
    if (said.loopback_host) who += " host";
    if (said.forwarded) who += " forwarded";
    if (said.foreign_origin) who += " origin";
    if (!said.authorization.empty()) who += " " + std::string(said.authorization);
    return core::Caller{.tenant = who, .key = std::string(said.authorization)};
  }

  mutable std::atomic<int> asked{0};
};

// A call that sends its metadata and no message.
class SilentCall : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  SilentCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
             const std::string& authorization)
      : stub_(channel) {
    context_.set_deadline(std::chrono::system_clock::now() + kGenerous);
    if (!authorization.empty()) context_.AddMetadata("authorization", authorization);
    stub_.PrepareBidiStreamingCall(&context_, method, {}, this);
    StartCall();
  }
  SilentCall(const SilentCall&) = delete;
  SilentCall& operator=(const SilentCall&) = delete;
  ~SilentCall() override {
    context_.TryCancel();
    status_.wait();
  }

  grpc::Status status() { return status_.get(); }
  // At last.
  void send() {
    StartWriteLast(&message_, {});
    StartRead(&answer_);
  }
  std::string detail() const {
    const auto& trailers = context_.GetServerTrailingMetadata();
    const auto found = trailers.find(rpc::kErrorTrailer);
    return found == trailers.end() ? "" : std::string(found->second.data(), found->second.size());
  }

 private:
  void OnDone(const grpc::Status& status) override { done_.set_value(status); }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::Slice nothing_;
  const grpc::ByteBuffer message_{&nothing_, 1};
  grpc::ByteBuffer answer_;
  std::promise<grpc::Status> done_;
  std::shared_future<grpc::Status> status_ = done_.get_future().share();
};

// A connection of the user nobody, which the kernel notes at its connect(): credentials are a
// thread's, only the C library makes them the process's.
std::shared_ptr<grpc::Channel> connect_as_nobody(const std::string& path) {
  constexpr uid_t kNobody = 65534;
  UniqueFd connection;
  std::thread([&] {
    if (::syscall(SYS_setresuid, kNobody, kNobody, kNobody) == 0) connection = connect_to(path);
  }).join();
  if (!connection) return nullptr;
  ::fcntl(connection.get(), F_SETFL, O_NONBLOCK);
  return grpc::CreateInsecureChannelFromFd("nobody", connection.release());
}

class GrpcFrontTest : public testing::Test {
 protected:
  std::unique_ptr<GrpcServer> listen(GrpcOptions options) {
    auto server =
        GrpcServer::listen(options, authenticator_, {}, [](const rpc::CallAccess& access) {
          GrpcServer::Services services;
          services.push_back(gated(std::make_unique<WhoService>(access),
                                   v1::Inference::service_full_name(), access));
          return services;
        });
    EXPECT_TRUE(server) << server.error().message;
    return server ? *std::move(server) : nullptr;
  }
  static std::shared_ptr<grpc::Channel> channel(
      const std::string& address,
      const std::shared_ptr<grpc::ChannelCredentials>& with = grpc::InsecureChannelCredentials()) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address, with, arguments);
  }
  static std::unique_ptr<v1::Inference::Stub> stub(
      const std::string& address,
      const std::shared_ptr<grpc::ChannelCredentials>& with = grpc::InsecureChannelCredentials()) {
    return v1::Inference::NewStub(channel(address, with));
  }
  struct Said {
    grpc::Status status;
    std::string who;
  };
  static Said who(v1::Inference::Stub& stub,
                  const std::vector<std::pair<std::string, std::string>>& metadata = {}) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kGenerous);
    for (const auto& [name, value] : metadata) context.AddMetadata(name, value);
    v1::ListModelsResponse response;
    Said said{stub.ListModels(&context, {}, &response), {}};
    if (response.models_size() == 1) said.who = response.models(0).name();
    return said;
  }

  const Folder folder_;
  const TellingAuthenticator authenticator_;
};

TEST_F(GrpcFrontTest, AKeysPlaceIsGivenBackHoweverItsCallEnds) {
  sim::SimClock clock;
  KeyGate gate(clock);
  gate.set({0, 1});
  const auto server =
      listen({.sockets = {folder_.file("s")}, .addresses = {"127.0.0.1:0"}, .limits = &gate});
  ASSERT_TRUE(server);
  const std::vector<std::pair<std::string, std::string>> key = {{"authorization", "Bearer k"}};
  for (const std::string& address : server->addresses()) {
    const auto client = stub(address);
    // One after the other each has the place, refused or not.
    for (int i = 0; i < 200; ++i) {
      const Said said = who(*client, key);
      ASSERT_TRUE(said.status.ok()) << said.status.error_message();
    }
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer k");
    const auto stream = client->Generate(&context, {});
    stream->WaitForInitialMetadata();
    const Said refused = who(*client, key);
    EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_TRUE(who(*client, {{"authorization", "Bearer other"}}).status.ok());
    EXPECT_TRUE(who(*client).status.ok());
    context.TryCancel();
    // The server hears of it later than its client.
    const auto until = std::chrono::steady_clock::now() + kGenerous;
    while (!who(*client, key).status.ok()) ASSERT_LT(std::chrono::steady_clock::now(), until);
  }
}

TEST_F(GrpcFrontTest, S6_WhoComesBySocketIsKnownByHisUser) {
  const auto server = listen({.sockets = {folder_.file("s")}});
  ASSERT_TRUE(server);
  EXPECT_EQ(server->addresses(), std::vector<std::string>{"unix:" + folder_.file("s")});
  const auto client = stub("unix:" + folder_.file("s"));
  const std::string own = "uid:" + std::to_string(::geteuid()) + " admin";
  for (int i = 0; i < 3; ++i) {
    const Said said = who(*client);
    ASSERT_TRUE(said.status.ok()) << said.status.error_message();
    EXPECT_TRUE(said.who.starts_with(own)) << said.who;
  }
  EXPECT_TRUE(who(*client, {{"authorization", "Bearer k"}}).who.ends_with("Bearer k"));
}

TEST_F(GrpcFrontTest, S6_TheNetworkIsToldApart) {
  const auto server = listen({.addresses = {"127.0.0.1:0"}});
  ASSERT_TRUE(server);
  ASSERT_EQ(server->addresses().size(), 1U);
  const std::string address = server->addresses().front();
  EXPECT_TRUE(address.starts_with("127.0.0.1:"));
  EXPECT_NE(address, "127.0.0.1:0") << "the port that was taken";
  const auto client = stub(address);
  EXPECT_EQ(who(*client).who, "network loopback host");
  EXPECT_EQ(who(*client, {{"x-forwarded-for", "1.2.3.4"}}).who, "network loopback host forwarded");
  EXPECT_EQ(who(*client, {{"via", "1.1 proxy"}}).who, "network loopback host forwarded");
  EXPECT_EQ(who(*client, {{"origin", "https://evil.example"}}).who, "network loopback host origin");
  const Said refused = who(*client, {{"authorization", "Bearer wrong"}});
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(who(*client, {{"authorization", "Bearer a"}, {"authorization", "Bearer b"}}).who,
            "network loopback host ambiguous");
}

TEST_F(GrpcFrontTest, S6_TheKeyIsLookedAtBeforeTheMessageComes) {
  const auto server = listen({.sockets = {folder_.file("s")}, .addresses = {"127.0.0.1:0"}});
  ASSERT_TRUE(server);
  for (const std::string& address : server->addresses()) {
    SilentCall call(channel(address), "/berth.v1.Inference/ListModels", "Bearer wrong");
    EXPECT_EQ(call.status().error_code(), grpc::StatusCode::UNAUTHENTICATED) << address;
    EXPECT_NE(call.detail(), "") << address;
  }
}

TEST_F(GrpcFrontTest, ACallThatEndsBeforeItsMessageCostsNothing) {
  const auto server = listen({.addresses = {"127.0.0.1:0"}});
  ASSERT_TRUE(server);
  const auto to = channel(server->addresses().front());
  for (int i = 0; i < 10; ++i) SilentCall(to, "/berth.v1.Inference/ListModels", "");
  EXPECT_TRUE(who(*v1::Inference::NewStub(to)).status.ok());
}

TEST_F(GrpcFrontTest, S6_WhoNeedsNoKeyKeepsNoCallWithoutAMessage) {
  auto server = GrpcServer::listen(
      {.addresses = {"127.0.0.1:0"}}, authenticator_, {}, [](const rpc::CallAccess& access) {
        GrpcServer::Services services;
        services.push_back(
            timed(std::make_unique<WhoService>(access), v1::Inference::service_full_name(), 100ms));
        return services;
      });
  ASSERT_TRUE(server) << server.error().message;
  const auto to = channel((*server)->addresses().front());
  SilentCall call(to, "/berth.v1.Inference/ListModels", "");
  EXPECT_EQ(call.status().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(call.status().error_message(), "The message did not come in time.");
  EXPECT_EQ(authenticator_.asked, 0);
  EXPECT_TRUE(who(*v1::Inference::NewStub(to)).status.ok()) << "the connection goes on";
}

TEST_F(GrpcFrontTest, ATakenAddressIsNamed) {
  const auto server = listen({.addresses = {"127.0.0.1:0"}});
  ASSERT_TRUE(server);
  const auto second =
      GrpcServer::listen({.addresses = server->addresses()}, authenticator_, {},
                         [](const rpc::CallAccess& /*access*/) { return GrpcServer::Services(); });
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find(server->addresses().front()), std::string::npos);
}

TEST_F(GrpcFrontTest, ANameIsServedAtEachOfItsAddresses) {
  const auto server = listen({.addresses = {"localhost:0"}});
  ASSERT_TRUE(server);
  const std::string address = server->addresses().front();
  EXPECT_TRUE(address.starts_with("localhost:"));
  EXPECT_EQ(who(*stub("127.0.0.1" + address.substr(address.rfind(':')))).who,
            "network loopback host");
  EXPECT_EQ(who(*stub(address)).who, "network loopback host");
}

TEST_F(GrpcFrontTest, AnAddressOfIpv6MayStandForIpv4) {
  if (!NetworkAcceptor::listen({.addresses = {"[::1]:0"}, .on_connection = {}})) {
    GTEST_SKIP() << "there is no IPv6";
  }
  const auto server = listen({.addresses = {"[::1]:0", "[::]:0", "[::ffff:127.0.0.1]:0"}});
  ASSERT_TRUE(server);
  const auto port = [&](std::size_t at) {
    const std::string& address = server->addresses().at(at);
    return address.substr(address.rfind(':'));
  };
  EXPECT_EQ(who(*stub("[::1]" + port(0))).who, "network loopback host");
  EXPECT_EQ(who(*stub("[::1]" + port(1))).who, "network loopback host");
  EXPECT_EQ(who(*stub("127.0.0.1" + port(1))).who, "network loopback host");
  EXPECT_EQ(who(*stub("127.0.0.1" + port(2))).who, "network loopback host");
}

TEST_F(GrpcFrontTest, S6_OneUserHasABoundOfCalls) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  const std::string path = folder_.file("s");
  ASSERT_EQ(::chmod(std::filesystem::path(path).parent_path().c_str(), 0755), 0);
  const auto server = listen({.sockets = {path}, .most_calls_of_user = 2});
  ASSERT_TRUE(server);
  const auto other = connect_as_nobody(path);
  ASSERT_TRUE(other);
  const std::string method = "/berth.v1.Inference/ListModels";
  const auto said = [&](const std::shared_ptr<grpc::Channel>& by) {
    return who(*v1::Inference::NewStub(by)).status;
  };
  auto first = std::make_unique<SilentCall>(other, method, "");
  authenticator_.asked.wait(0);
  const SilentCall second(other, method, "");
  authenticator_.asked.wait(1);
  const grpc::Status refused = said(other);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(refused.error_message().find("2 calls"), std::string::npos);
  EXPECT_TRUE(said(channel("unix:" + path)).ok()) << "an admin's";
  first.reset();
  const auto until = std::chrono::steady_clock::now() + kGenerous;
  bool taken = false;
  while (!taken && std::chrono::steady_clock::now() < until) taken = said(other).ok();
  EXPECT_TRUE(taken);
}

TEST_F(GrpcFrontTest, WhoWasLetInStaysSoHoweverManyComeAfterwards) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  const std::string path = folder_.file("s");
  ASSERT_EQ(::chmod(std::filesystem::path(path).parent_path().c_str(), 0755), 0);
  const auto server = listen({.sockets = {path}, .most_calls_of_user = 1});
  ASSERT_TRUE(server);
  const auto other = connect_as_nobody(path);
  ASSERT_TRUE(other);
  SilentCall first(other, "/berth.v1.Inference/ListModels", "");
  authenticator_.asked.wait(0);
  const int before = WhoService::counting;
  const SilentCall beyond(other, "/berth.v1.Inference/CountTokens", "");
  WhoService::counting.wait(before);
  EXPECT_EQ(authenticator_.asked, 1) << "it is refused";
  first.send();
  EXPECT_TRUE(first.status().ok()) << first.status().error_message();
  EXPECT_EQ(authenticator_.asked, 2) << "its key may have gone";
}

TEST_F(GrpcFrontTest, S6_TlsOnTheNetwork) {
  const std::string key = folder_.file("key.pem");
  const std::string cert = folder_.file("cert.pem");
  const std::string command =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -keyout " +
      key + " -out " + cert +
      " -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>/dev/null";
  // NOLINTNEXTLINE(concurrency-mt-unsafe): its words are ours
  if (std::system(command.c_str()) != 0) GTEST_SKIP() << "there is no openssl";
  const auto server = listen({.addresses = {"127.0.0.1:0"}, .tls_cert = cert, .tls_key = key});
  ASSERT_TRUE(server);
  std::ifstream file(cert);
  grpc::SslCredentialsOptions trusted;
  trusted.pem_root_certs = std::string{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(who(*stub(server->addresses().front(), grpc::SslCredentials(trusted))).who,
            "network loopback host");
  EXPECT_FALSE(who(*stub(server->addresses().front())).status.ok()) << "without TLS";
}

TEST_F(GrpcFrontTest, S6_AMissingCertificateIsNamed) {
  const auto server = GrpcServer::listen(
      {.addresses = {"127.0.0.1:0"}, .tls_cert = folder_.file("no.pem"), .tls_key = "/no.key"},
      authenticator_, {}, [](const rpc::CallAccess& /*access*/) { return GrpcServer::Services(); });
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().reason, Reason::kInvalidArgument);
  EXPECT_NE(server.error().message.find("no.pem"), std::string::npos);
  EXPECT_NE(server.error().message.find("server.tls_cert"), std::string::npos);
}

// As docs/api.md says: without a trailer.
TEST_F(GrpcFrontTest, AMessageBeyondTheLimitIsRefusedAndTheConnectionGoesOn) {
  const auto server =
      listen({.sockets = {folder_.file("s")}, .max_message_bytes = 1024UL * 1024UL});
  ASSERT_TRUE(server);
  const auto client = stub("unix:" + folder_.file("s"));
  v1::TokenizeRequest request;
  request.set_text(std::string(2UL * 1024UL * 1024UL, 'a'));
  v1::TokenizeResponse response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kGenerous);
  const grpc::Status status = client->Tokenize(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_NE(status.error_message().find("1048576"), std::string::npos) << status.error_message();
  EXPECT_FALSE(context.GetServerTrailingMetadata().contains(rpc::kErrorTrailer));
  EXPECT_TRUE(who(*client).status.ok());
}

// A few bytes would become any number of them, beyond every bound.
TEST_F(GrpcFrontTest, S6_ACompressedMessageIsRefusedAndFloodsNoLog) {
  const auto server = listen(
      {.sockets = {folder_.file("s")}, .addresses = {"127.0.0.1:0"}, .max_message_bytes = 1 << 20});
  ASSERT_TRUE(server);
  v1::TokenizeRequest request;
  request.set_text(std::string(2UL * 1024UL * 1024UL, 'a'));
  testing::internal::CaptureStderr();
  for (const std::string& address : server->addresses()) {
    const auto client = stub(address);
    for (int i = 0; i < 30; ++i) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + kGenerous);
      context.set_compression_algorithm(i % 2 == 0 ? GRPC_COMPRESS_GZIP : GRPC_COMPRESS_DEFLATE);
      v1::TokenizeResponse response;
      const grpc::Status status = client->Tokenize(&context, request, &response);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
    }
    EXPECT_TRUE(who(*client).status.ok()) << "the connection goes on";
  }
  const std::string logged = testing::internal::GetCapturedStderr();
  EXPECT_LE(std::ranges::count(logged, '\n'), 12) << logged;
}

TEST_F(GrpcFrontTest, L29_AfterTheShutdownNobodyIsServed) {
  const auto server = listen({.sockets = {folder_.file("s")}, .addresses = {"127.0.0.1:0"}});
  ASSERT_TRUE(server);
  const auto by_socket = stub("unix:" + folder_.file("s"));
  const auto by_network = stub(server->addresses().back());
  ASSERT_TRUE(who(*by_socket).status.ok());
  ASSERT_TRUE(who(*by_network).status.ok());
  server->shutdown(std::chrono::milliseconds(0));
  EXPECT_EQ(who(*by_socket).status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(who(*by_network).status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_FALSE(connect_to(folder_.file("s")));
}

TEST_F(GrpcFrontTest, L29_WhoComesMeanwhileIsToldThatTheServerStops) {
  const auto server = listen({.sockets = {folder_.file("s")}, .addresses = {"127.0.0.1:0"}});
  ASSERT_TRUE(server);
  SilentCall call(channel(server->addresses().back()), "/berth.v1.Inference/ListModels", "");
  authenticator_.asked.wait(0);
  const auto ended = std::async([&] { server->shutdown(kGenerous); });
  while (connect_to(folder_.file("s"))) std::this_thread::yield();
  call.send();
  EXPECT_EQ(call.status().error_code(), grpc::StatusCode::UNAVAILABLE);
  v1::ErrorDetail detail;
  ASSERT_TRUE(detail.ParseFromString(call.detail()));
  EXPECT_EQ(detail.reason(), "shutting_down");
  EXPECT_EQ(ended.wait_for(kGenerous), std::future_status::ready);
}

}  // namespace
}  // namespace berth::gateway
