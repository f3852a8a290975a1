#include "supervisor/gateway/http/host_header.h"

#include <gtest/gtest.h>

namespace berth::gateway {
namespace {

bool is_answered(std::string_view text) {
  const std::optional<HostPort> host = parse_host(text);
  return host && host_allowed(*host, {});
}

TEST(HostHeader, LocalhostAndAddressesAreAnswered) {
  for (const char* host : {"localhost", "localhost:11500", "127.0.0.1", "127.0.0.1:1", "[::1]:80",
                           "[::1]", "192.168.1.5:11500"}) {
    EXPECT_TRUE(is_answered(host)) << host;
  }
}

TEST(HostHeader, T95_NamesOfOtherSitesAreRefused) {
  for (const char* host : {"", "evil.example", "evil.example:11500", "localhost.evil.example",
                           "127.0.0.1.evil.example", "[::1", "[::1]x", "[::1]:", "localhost:",
                           "localhost:99999999", "::1", "[evil]:1", "127.0.0.1:80:80"}) {
    EXPECT_FALSE(is_answered(host)) << host;
  }
}

}  // namespace
}  // namespace berth::gateway
