#include "supervisor/gateway/grpc/peer_servers.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/gateway/acceptor_support.h"

namespace berth::gateway {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

using testing::kGenerous;

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

}  // namespace
}  // namespace berth::gateway
