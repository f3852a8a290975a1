#include "supervisor/cli/client/connect_problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using testing::HasSubstr;

constexpr const char* kPlainToTls =
    "failed to connect to all addresses; last error: UNAVAILABLE: ipv4:127.0.0.1:1: Socket closed";

TEST(ConnectProblem, SaysWhichOneItIs) {
  const auto of = [](const char* text, bool tls) { return connect_problem(text, tls); };
  EXPECT_THAT(of("last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote host: "
                 "Connection refused",
                 false),
              HasSubstr("nobody listens there"));
  EXPECT_THAT(of("INTERNAL: ipv4:127.0.0.1:1: Trying to connect an http1.x server", false),
              HasSubstr("the HTTP port"));
  EXPECT_THAT(of(kPlainToTls, false), HasSubstr("wants TLS"));
  EXPECT_THAT(of("Ssl handshake failed: SSL_ERROR_SSL: error:0A000086:SSL "
                 "routines::certificate verify failed",
                 true),
              HasSubstr("not signed by the CA"));
  EXPECT_THAT(of("Ssl handshake failed: SSL_ERROR_SSL: error:0A00010B:SSL routines::wrong version "
                 "number",
                 true),
              HasSubstr("has no TLS"));
  EXPECT_THAT(of("DNS resolution failed for nosuch.invalid:5: C-ares", false),
              HasSubstr("not known"));
}

TEST(ConnectProblem, WhatIsNotKnownIsShown) {
  EXPECT_EQ(connect_problem("something new", false),
            "nobody answers there as berthd does (something new)");
  EXPECT_THAT(connect_problem(kPlainToTls, true), HasSubstr("Socket closed"));
}

}  // namespace
}  // namespace berth::cli
