#include "supervisor/process/port.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "supervisor/process/process_launcher.h"
#include "tests/unit/process/loop.h"
#include "tests/unit/process/temp_dir.h"

namespace berth::process {
namespace {

using testing::Recorder;
using testing::run_until;
using testing::shell;
using ::testing::StartsWith;
using testing::TempDir;

UniqueFd listen_at(const char* address, std::uint16_t port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  ::inet_pton(AF_INET, address, &to.sin_addr);
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  EXPECT_EQ(::listen(fd.get(), 1), 0);
  return fd;
}

UniqueFd listen_at6(bool mapped, std::uint16_t port) {
  sockaddr_in6 to{};
  to.sin6_family = AF_INET6;
  to.sin6_port = htons(port);
  if (mapped) ::inet_pton(AF_INET6, "::ffff:127.0.0.1", &to.sin6_addr);
  UniqueFd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd || ::bind(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return UniqueFd();
  EXPECT_EQ(::listen(fd.get(), 1), 0);
  return fd;
}

// A child that holds none of our sockets.
class PortTest : public ::testing::Test {
 protected:
  PortTest() {
    child_ = *launcher_.launch(shell("echo up >&3; read line"), recorder_);
    EXPECT_TRUE(run_until(io_, [this] { return !recorder_.lines.empty(); }));
  }
  ~PortTest() override {
    child_->close_stdin();
    EXPECT_TRUE(run_until(io_, [this] { return recorder_.exit.has_value(); }));
  }
  PortTest(const PortTest&) = delete;
  PortTest& operator=(const PortTest&) = delete;

  static std::uint16_t free_port() {
    PortBook ports;
    const auto reserved = ports.reserve();
    EXPECT_TRUE(reserved) << reserved.error().message;
    return reserved ? reserved->port : 0;
  }

  boost::asio::io_context io_{1};
  RealLauncher launcher_{io_};
  Recorder recorder_;
  std::unique_ptr<ChildProcess> child_;
};

TEST_F(PortTest, L21_WithoutADescriptorItIsAResourceFailure) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  PortBook ports;
  const auto reserved = ports.reserve();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(reserved);
  ASSERT_TRUE(reserved.error().extras && reserved.error().extras->failure);
  EXPECT_EQ(reserved.error().extras->failure->failure_class, "resource");
}

TEST_F(PortTest, L27_PortsDifferAndAreKeptUntilGivenBack) {
  PortBook book;
  std::set<std::uint16_t> ports;
  std::vector<ReservedPort> kept;
  for (int i = 0; i < 20; ++i) {
    auto reserved = book.reserve();
    ASSERT_TRUE(reserved) << reserved.error().message;
    EXPECT_GT(reserved->port, 1023);
    ports.insert(reserved->port);
    kept.push_back(*std::move(reserved));
  }
  EXPECT_EQ(ports.size(), kept.size());
  const std::uint16_t port = kept.front().port;
  EXPECT_EQ(listener_on_port(port, ::getpid()).who, Answerer::kNobody);
  kept.clear();
  EXPECT_TRUE(listen_at("127.0.0.1", port));
}

TEST_F(PortTest, L27_APortIsNobodyElsesUntilItsClaimIsLetGo) {
  PortBook book;
  std::set<std::uint16_t> ports;
  std::vector<std::shared_ptr<const PortClaim>> claims;
  // So many that without the book some would be chosen twice.
  constexpr std::size_t kMany = 1500;
  for (std::size_t i = 0; i < kMany; ++i) {
    auto reserved = book.reserve();
    ASSERT_TRUE(reserved) << reserved.error().message;
    reserved->socket.reset();  // its program begins, and binds it at some time
    ports.insert(reserved->port);
    claims.push_back(std::move(reserved->claim));
  }
  EXPECT_EQ(ports.size(), kMany);
  EXPECT_EQ(book.claimed(), kMany);
  claims.resize(1);
  EXPECT_EQ(book.claimed(), 1U);
  claims.clear();
}

TEST_F(PortTest, L27_TheChildOrOneOfItsDescendantsMustAnswer) {
  const std::uint16_t port = free_port();
  EXPECT_EQ(listener_on_port(port, child_->pid()).who, Answerer::kNobody);
  const UniqueFd socket = listen_at("127.0.0.1", port);
  EXPECT_EQ(listener_on_port(port, ::getpid()).who, Answerer::kChild);
  EXPECT_FALSE(listener_on_port(port, ::getpid()).everywhere);
  // We are not of the child's tree, but it is of its parent's.
  EXPECT_EQ(listener_on_port(port, ::getppid()).who, Answerer::kChild);
}

TEST_F(PortTest, L27_AProgramWithoutAProcessAnswersNothing) {
  const std::uint16_t port = free_port();
  const UniqueFd socket = listen_at("127.0.0.1", port);
  EXPECT_EQ(listener_on_port(port, 0).who, Answerer::kOther);
}

TEST_F(PortTest, T27_AStrangerOnThePortIsNamed) {
  const std::uint16_t port = free_port();
  const UniqueFd socket = listen_at("127.0.0.1", port);
  const Listener listener = listener_on_port(port, child_->pid());
  EXPECT_EQ(listener.who, Answerer::kOther);
  EXPECT_EQ(listener.other, "pid " + std::to_string(::getpid()) + " (process_test)");
}

TEST_F(PortTest, L27_ASocketOnAllAddressesIsSeen) {
  const std::uint16_t port = free_port();
  {
    const UniqueFd socket = listen_at("0.0.0.0", port);
    const Listener listener = listener_on_port(port, ::getpid());
    EXPECT_EQ(listener.who, Answerer::kChild);
    EXPECT_TRUE(listener.everywhere);
    EXPECT_EQ(listener_on_port(port, child_->pid()).who, Answerer::kOther);
  }
  {
    const UniqueFd socket = listen_at6(false, port);
    if (!socket) GTEST_SKIP() << "no IPv6 here";
    EXPECT_TRUE(listener_on_port(port, ::getpid()).everywhere);
  }
  const UniqueFd socket = listen_at6(true, port);
  ASSERT_TRUE(socket);
  const Listener listener = listener_on_port(port, ::getpid());
  EXPECT_EQ(listener.who, Answerer::kChild);
  EXPECT_FALSE(listener.everywhere);
}

TEST_F(PortTest, L27_AnotherAddressOfTheMachineIsNotLookedAt) {
  const std::uint16_t port = free_port();
  const UniqueFd socket = listen_at("127.0.0.2", port);
  EXPECT_EQ(listener_on_port(port, child_->pid()).who, Answerer::kNobody);
}

TEST_F(PortTest, L27_AUnixSocketIsLookedAtInTheSameWay) {
  const TempDir dir;
  const std::string path = dir.file("a b.sock");
  EXPECT_EQ(listener_on_socket(path, ::getpid()).who, Answerer::kNobody);
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(&to.sun_path[0], path.c_str(), path.size());
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  EXPECT_EQ(listener_on_socket(path, ::getpid()).who, Answerer::kNobody);
  ASSERT_EQ(::listen(fd.get(), 1), 0);
  EXPECT_EQ(listener_on_socket(path, ::getpid()).who, Answerer::kChild);
  const Listener listener = listener_on_socket(path, child_->pid());
  EXPECT_EQ(listener.who, Answerer::kOther);
  EXPECT_THAT(listener.other, StartsWith("pid " + std::to_string(::getpid())));
}

}  // namespace
}  // namespace berth::process
