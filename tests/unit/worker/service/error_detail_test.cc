#include "worker/service/error_detail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/text.h"

namespace berth::worker {
namespace {

using testing::ElementsAre;

v1::ErrorDetail parsed(const std::string& trailer) {
  v1::ErrorDetail detail;
  EXPECT_TRUE(detail.ParseFromString(trailer));
  return detail;
}

TEST(ErrorDetail, KeepsTheWholeMessageAndTheTrailerItsBeginning) {
  std::string message(kTrailerTextBytes - 1, 'x');
  for (int i = 0; i < 10'000; ++i) message += "\xC3\xA9";  // the first one does not fit
  const Error error(Reason::kInvalidArgument, message);
  const auto detail = to_detail(error, "req-1");
  EXPECT_EQ(detail.message(), message);
  const auto brief = parsed(to_trailer(detail));
  EXPECT_EQ(brief.message(), std::string(kTrailerTextBytes - 1, 'x'));
  EXPECT_EQ(brief.reason(), detail.reason());
  EXPECT_EQ(brief.request_id(), "req-1");
  EXPECT_EQ(to_status(error).error_message(), brief.message());
}

// 8 KiB with gRPC's own headers, in base64, beside a message of three bytes for each that is not
// printable.
TEST(ErrorDetail, ATrailerIsSmallWhateverIsInIt) {
  const std::string longest(100'000, '\x7F');
  ErrorExtras extras;
  extras.param = longest;
  extras.suggestions.assign(100, longest);
  const auto trailer = to_trailer(to_detail(Error(Reason::kNotFound, longest, extras), longest));
  EXPECT_LT(trailer.size() * 4 / 3 + 3 * kTrailerTextBytes, 6U * 1024U);
  EXPECT_EQ(parsed(trailer).suggestions_size(), kTrailerSuggestions);
}

TEST(ErrorDetail, HasTheSuggestions) {
  ErrorExtras extras;
  extras.suggestions = {"get_weather", "get_time"};
  const auto detail = to_detail(Error(Reason::kInvalidArgument, "No such tool.", extras), "");
  EXPECT_THAT(detail.suggestions(), ElementsAre("get_weather", "get_time"));
  EXPECT_THAT(parsed(to_trailer(detail)).suggestions(), ElementsAre("get_weather", "get_time"));
}

}  // namespace
}  // namespace berth::worker
