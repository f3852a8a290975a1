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

TEST(ListenAddress, KnowsWhatOnlyThisMachineReaches) {
  for (const char* local : {"unix:/run/b.sock", "127.0.0.1:1", "127.9.9.9:1", "[::1]:1",
                            "localhost:1", "LOCALHOST:0"}) {
    EXPECT_TRUE(is_local_address(local)) << local;
  }
  for (const char* open : {"0.0.0.0:1", "[::]:1", "192.168.1.2:1", "128.0.0.1:1", "box:1",
                           "localhost.example:1", "[::ffff:127.0.0.1]:1"}) {
    EXPECT_FALSE(is_local_address(open)) << open;
  }
}

TEST(ListenAddress, OriginsAreWhatBrowsersSend) {
  EXPECT_EQ(normal_origin("HTTP://Example.ORG:80").value(), "http://example.org");
  EXPECT_EQ(normal_origin("https://[::1]:8443").value(), "https://[::1]:8443");
  EXPECT_EQ(normal_origin("http://[::1]").value(), "http://[::1]");
  EXPECT_EQ(normal_origin("https://a:80").value(), "https://a:80");
  for (const char* wrong : {"", "*", "null", "a", "//a", "ftp://a", "http://", "http://*",
                            "http://a/", "http://u@a", "http://a?b", "http://a:0", "http://a:080",
                            "http://a:99999", "http://a b", "file://", "http://*.a"}) {
    EXPECT_FALSE(normal_origin(wrong)) << wrong;
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
