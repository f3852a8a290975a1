#include "supervisor/gateway/http/error_response.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace berth::gateway {
namespace {

bool told_not_to_retry(const std::string& failure_class) {
  FailureEvidence evidence;
  evidence.failure_class = failure_class;
  ErrorExtras extras;
  extras.failure = evidence;
  const Error error(Reason::kLoadFailed, "m could not be loaded.", extras);
  const HttpResponse response = error_response(error, "id", core::Caller());
  EXPECT_EQ(response.status, 503);
  return std::ranges::any_of(response.headers, [](const auto& header) {
    return header.name == "x-should-retry" && header.value == "false";
  });
}

TEST(ErrorResponse, ARetryDoesNotMendAFailureThatStands) {
  for (const char* standing :
       {"permanent", "launch", "crash", "crash_loop", "stalled", "timeout", "unclassified"}) {
    EXPECT_TRUE(told_not_to_retry(standing)) << standing;
  }
}

TEST(ErrorResponse, MemoryMayBeFreeInAMoment) {
  for (const char* passing : {"resource", "oom"}) {
    EXPECT_FALSE(told_not_to_retry(passing)) << passing;
  }
}

}  // namespace
}  // namespace berth::gateway
