#include "worker/service/listen_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace berth::worker {
namespace {

using testing::HasSubstr;

class ListenSocketTest : public testing::Test {
 protected:
  ListenSocketTest() {
    std::string pattern = "/tmp/berth-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~ListenSocketTest() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string path(const std::string& name = "s") const {
    return directory_ + "/" + name;
  }
  static bool connects(const std::string& path) {
    const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path.c_str());
    return ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }

  std::string directory_;
};

TEST_F(ListenSocketTest, ListensAndRemovesItsName) {
  {
    const auto socket = ListenSocket::open(path());
    ASSERT_TRUE(socket.has_value()) << socket.error().message;
    EXPECT_FALSE(socket->accept());
    EXPECT_TRUE(connects(path()));
    EXPECT_TRUE(socket->accept());
  }
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(ListenSocketTest, L21_AShortageIsToldFromWhatLasts) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto lacking = ListenSocket::open(path());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(lacking);
  EXPECT_EQ(lacking.error().reason, Reason::kNoRoom);
  EXPECT_THAT(lacking.error().message, HasSubstr("Too many open files"));
  const auto nowhere = ListenSocket::open(path("no/such/s"));
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().reason, Reason::kInternal);
}

TEST_F(ListenSocketTest, L26_MakesAPrivateDirectory) {
  const auto socket = ListenSocket::open(path("run/s"));
  ASSERT_TRUE(socket.has_value()) << socket.error().message;
  struct stat status {};
  ASSERT_EQ(::stat(path("run").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
}

TEST_F(ListenSocketTest, L26_RefusesAnOpenDirectory) {
  ASSERT_EQ(::chmod(directory_.c_str(), 0755), 0);
  const auto socket = ListenSocket::open(path());
  ASSERT_FALSE(socket.has_value());
  EXPECT_EQ(socket.error().reason, Reason::kPermissionDenied);
}

TEST_F(ListenSocketTest, RefusesALinkToADirectory) {
  std::filesystem::create_directory_symlink(directory_, path("link"));
  EXPECT_FALSE(ListenSocket::open(path("link/s")).has_value());
}

TEST_F(ListenSocketTest, RefusesAPathThatSomebodyListensOn) {
  const auto first = ListenSocket::open(path());
  ASSERT_TRUE(first.has_value());
  const auto second = ListenSocket::open(path());
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().reason, Reason::kConflict);
  EXPECT_THAT(second.error().message, HasSubstr("listens on"));
  EXPECT_TRUE(connects(path()));
}

TEST_F(ListenSocketTest, ReplacesASocketThatNobodyListensOn) {
  {
    const UniqueFd dead(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path().c_str());
    ASSERT_EQ(::bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  const auto socket = ListenSocket::open(path());
  EXPECT_TRUE(socket.has_value());
  EXPECT_TRUE(connects(path()));
}

TEST_F(ListenSocketTest, LeavesOtherFilesAlone) {
  std::ofstream(path()) << "precious";
  const auto socket = ListenSocket::open(path());
  ASSERT_FALSE(socket.has_value());
  EXPECT_THAT(socket.error().message, HasSubstr("not a socket"));
  EXPECT_TRUE(std::filesystem::exists(path()));
}

TEST_F(ListenSocketTest, KeepsTheNameOfItsSuccessor) {
  auto first = ListenSocket::open(path());
  ASSERT_TRUE(first.has_value());
  ASSERT_EQ(::unlink(path().c_str()), 0);
  const auto second = ListenSocket::open(path());
  ASSERT_TRUE(second.has_value());
  first->remove_name();
  EXPECT_TRUE(std::filesystem::exists(path()));
}

TEST_F(ListenSocketTest, RefusesAPathThatIsTooLong) {
  const auto fits = path(std::string(107 - path("").size(), 'x'));
  ASSERT_EQ(fits.size(), 107U);
  EXPECT_TRUE(ListenSocket::open(fits).has_value());
  const auto socket = ListenSocket::open(fits + "x");
  ASSERT_FALSE(socket.has_value());
  EXPECT_EQ(socket.error().reason, Reason::kInvalidArgument);
  EXPECT_THAT(socket.error().message, HasSubstr("108"));
}

}  // namespace
}  // namespace berth::worker
