#include "supervisor/catalog/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace berth::catalog {
namespace {

using ::testing::HasSubstr;

TEST(ListenAddress, TakesNamesAndAddresses) {
  for (const char* good : {"127.0.0.1:11500", "localhost:0", "[::1]:8080", "[::]:65535",
                           "my-host.example:1", "0.0.0.0:80"}) {
    EXPECT_TRUE(check_host_port(good)) << good;
  }
}

TEST(ListenAddress, SaysWhatIsWrong) {
  const struct {
    const char* address;
    const char* says;
  } cases[] = {
      {"127.0.0.1", "no port"},
      {"", "no port"},
      {":80", "not a name or an address"},
      {"host:", "not a number from 0 to 65535"},
      {"host:65536", "not a number from 0 to 65535"},
      {"host:-1", "not a number from 0 to 65535"},
      {"host:8x", "not a number from 0 to 65535"},
      {"host:99999999999999999999", "not a number from 0 to 65535"},
      {"::1:80", "must stand in brackets"},
      {"[::1:80", "must stand in brackets"},
      {"[zz]:80", "not an IPv6 address"},
      {"[127.0.0.1]:80", "not an IPv6 address"},
      {"1.2.3:80", "not an IPv4 address"},
      {"256.0.0.1:80", "not an IPv4 address"},
      {"a b:80", "not a name or an address"},
      {"http://host:80", "must stand in brackets"},
  };
  for (const auto& wrong : cases) {
    const auto result = check_host_port(wrong.address);
    ASSERT_FALSE(result) << wrong.address;
    EXPECT_THAT(result.error(), HasSubstr(wrong.says)) << wrong.address;
  }
}

TEST(ListenAddress, SocketPathsHaveAtMost107Bytes) {
  EXPECT_TRUE(check_socket_path("/" + std::string(106, 'a')));
  const auto result = check_socket_path("/" + std::string(107, 'a'));
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error(), HasSubstr("108 bytes"));
  EXPECT_THAT(result.error(), HasSubstr("at most 107"));
}

}  // namespace
}  // namespace berth::catalog
