#include "common/sd_notify.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

#include "common/fd.h"
#include "tests/unit/common/temp_dir.h"

namespace berth::systemd {
namespace {

// Plays the service manager: a datagram socket whose path is in NOTIFY_SOCKET.
class SdNotify : public testing::Test {
 protected:
  void SetUp() override {
    socket_ = UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ASSERT_TRUE(socket_);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = dir_.file("notify");
    ASSERT_LT(path.size(), sizeof(address.sun_path));
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    ASSERT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              0);
    set("NOTIFY_SOCKET", path);
  }
  void TearDown() override {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) {
      ::unsetenv(name);  // NOLINT(concurrency-mt-unsafe)
    }
  }

  static void set(const char* name, const std::string& value) {
    ::setenv(name, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }

  std::string received() {
    std::array<char, 4096> message{};
    const ssize_t got = ::recv(socket_.get(), message.data(), message.size(), 0);
    return got < 0 ? std::string("nothing")
                   : std::string(message.data(), static_cast<std::size_t>(got));
  }

  test::TempDir dir_;
  UniqueFd socket_;
};

TEST_F(SdNotify, T100_TellsTheServiceManager) {
  notify_ready();
  EXPECT_EQ(received(), "READY=1");
  notify_status("two models\nready\x1b[0m");
  EXPECT_EQ(received(), "STATUS=two models ready[0m");
  notify_watchdog();
  EXPECT_EQ(received(), "WATCHDOG=1");
  notify_stopping();
  EXPECT_EQ(received(), "STOPPING=1");
  EXPECT_EQ(received(), "nothing");
}

TEST_F(SdNotify, T100_KnowsTheWatchdogsInterval) {
  EXPECT_EQ(watchdog_interval(), std::nullopt);
  set("WATCHDOG_USEC", "30000000");
  EXPECT_EQ(watchdog_interval(), Duration(std::chrono::seconds(30)));
  set("WATCHDOG_PID", "1");  // of another process
  EXPECT_EQ(watchdog_interval(), std::nullopt);
}

TEST_F(SdNotify, DoesNothingWithoutSystemd) {
  TearDown();
  notify_ready();
  notify_status("x");
  notify_watchdog();
  notify_stopping();
  EXPECT_EQ(received(), "nothing");
  EXPECT_EQ(watchdog_interval(), std::nullopt);
}

TEST_F(SdNotify, SurvivesAManagerThatIsGone) {
  socket_.reset();
  notify_ready();
  notify_watchdog();
}

}  // namespace
}  // namespace berth::systemd
