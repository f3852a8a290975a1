#include "supervisor/process/unix_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "common/fd.h"
#include "tests/unit/process/temp_dir.h"

namespace berth::process {
namespace {

using testing::append;
using ::testing::HasSubstr;
using testing::slurp;
using testing::TempDir;

UniqueFd bound_socket(const std::string& path, int type = SOCK_STREAM) {
  UniqueFd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(&address.sun_path[0], path.c_str(), path.size());
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return fd;
}

TEST(UnixSocket, MissingDirectoryIsMadeForTheGroup) {
  const TempDir dir;
  const auto ready = prepare_socket_path(dir.file("run/berth/berth.sock"));
  ASSERT_TRUE(ready) << ready.error().message;
  struct stat info {};
  ASSERT_EQ(::stat(dir.file("run/berth").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0750U);
}

TEST(UnixSocket, TooLongNamesBothNumbers) {
  const TempDir dir;
  std::string path = dir.file("");
  path.append(kLongestSocketPath - path.size(), 'x');
  EXPECT_TRUE(prepare_socket_path(path));
  { const UniqueFd fits = bound_socket(path); }
  path += 'x';
  const auto ready = prepare_socket_path(path);
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().reason, Reason::kInvalidArgument);
  EXPECT_THAT(ready.error().message, HasSubstr("108 bytes"));
  EXPECT_THAT(ready.error().message, HasSubstr("at most 107"));
}

TEST(UnixSocket, AListenerIsNamedAndLeftAlone) {
  const TempDir dir;
  const std::string path = dir.file("s");
  const UniqueFd listener = bound_socket(path);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  const auto ready = prepare_socket_path(path);
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().reason, Reason::kConflict);
  EXPECT_THAT(ready.error().message, HasSubstr("in use by pid " + std::to_string(::getpid())));
  for (int i = 0; i < 5; ++i) {  // also when its backlog is full
    EXPECT_EQ(prepare_socket_path(path).error().reason, Reason::kConflict);
  }
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(UnixSocket, ASocketOfAnotherTypeIsInUse) {
  const TempDir dir;
  const UniqueFd datagram = bound_socket(dir.file("s"), SOCK_DGRAM);
  const auto ready = prepare_socket_path(dir.file("s"));
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().reason, Reason::kConflict);
}

TEST(UnixSocket, AStaleSocketIsRemoved) {
  const TempDir dir;
  const std::string path = dir.file("s");
  { const UniqueFd old = bound_socket(path); }
  ASSERT_TRUE(std::filesystem::exists(path));
  ASSERT_TRUE(prepare_socket_path(path));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(UnixSocket, WhatIsNoSocketIsNeverRemoved) {
  const TempDir dir;
  append(dir.file("file"), "precious");
  std::filesystem::create_symlink(dir.file("file"), dir.file("link"));
  std::filesystem::create_directory(dir.file("folder"));
  for (const char* name : {"file", "link", "folder"}) {
    const auto ready = prepare_socket_path(dir.file(name));
    ASSERT_FALSE(ready) << name;
    EXPECT_EQ(ready.error().reason, Reason::kInvalidArgument);
    EXPECT_THAT(ready.error().message, HasSubstr("not a socket"));
    EXPECT_TRUE(std::filesystem::exists(dir.file(name))) << name;
  }
  EXPECT_EQ(slurp(dir.file("file")), "precious");
}

TEST(UnixSocket, WrongPathsAreRefused) {
  const TempDir dir;
  append(dir.file("file"), "x");
  for (const std::string& path :
       {std::string(), std::string("name"), dir.file("folder/"), dir.file("file/s")}) {
    const auto ready = prepare_socket_path(path);
    ASSERT_FALSE(ready) << path;
    EXPECT_EQ(ready.error().reason, Reason::kInvalidArgument) << path;
  }
}

}  // namespace
}  // namespace berth::process
