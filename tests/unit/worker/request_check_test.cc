#include "worker/service/request_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "worker/service/error_detail.h"

namespace berth::worker {
namespace {

using testing::HasSubstr;

v1::GenerateRequest request() {
  v1::GenerateRequest made;
  made.set_prompt("x");
  return made;
}

Error problem(const v1::GenerateRequest& made) {
  const auto job = check_request(made);
  EXPECT_FALSE(job.has_value());
  if (job) return {};
  EXPECT_EQ(job.error().reason, Reason::kInvalidArgument);
  return job.error();
}

TEST(RequestCheck, UsesTheDefaultsOfTheProtocol) {
  const auto job = check_request(request());
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->sampling.temperature, 0.8F);
  EXPECT_EQ(job->sampling.top_k, 40U);
  EXPECT_EQ(job->sampling.top_p, 0.95F);
  EXPECT_EQ(job->job->max_tokens, std::numeric_limits<std::uint32_t>::max());
}

TEST(RequestCheck, RefusesSamplingOutOfRange) {
  for (const float value : {-0.1F, 100.1F, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    auto made = request();
    made.mutable_sampling()->set_temperature(value);
    const auto error = problem(made);
    EXPECT_THAT(error.message, HasSubstr("from 0 to 100"));
    EXPECT_EQ(error.extras->param, "sampling.temperature");
  }
  for (const float value : {0.0F, -1.0F, 1.01F, std::nanf("")}) {
    auto made = request();
    made.mutable_sampling()->set_top_p(value);
    EXPECT_EQ(problem(made).extras->param, "sampling.top_p");
  }
}

TEST(RequestCheck, RefusesBadStops) {
  auto empty = request();
  empty.add_stop("a");
  empty.add_stop("");
  EXPECT_EQ(problem(empty).extras->param, "stop[1]");
  auto longer = request();
  longer.add_stop(std::string(1025, 'x'));
  EXPECT_THAT(problem(longer).message, HasSubstr("1025"));
  auto bytes = request();
  bytes.add_stop("ab\xff");
  EXPECT_THAT(problem(bytes).message, HasSubstr("byte 2"));
  auto many = request();
  for (int i = 0; i < 17; ++i) many.add_stop("x");
  EXPECT_THAT(problem(many).message, HasSubstr("17"));
}

TEST(RequestCheck, NamesTheFirstTokenThatDoesNotExist) {
  v1::TokenInput input;
  for (const int id : {0, 99, 100}) input.add_ids(id);
  const auto tokens = check_tokens(input, 100);
  ASSERT_FALSE(tokens.has_value());
  EXPECT_EQ(tokens.error().extras->param, "tokens.ids[2]");
  EXPECT_THAT(tokens.error().message, HasSubstr("0 to 99"));
  input.set_ids(2, -1);
  EXPECT_FALSE(check_tokens(input, 100).has_value());
}

TEST(RequestCheck, T93_TooLongAPromptIsRefusedWithBothNumbers) {
  EXPECT_TRUE(check_window(99, 100).has_value());
  const auto checked = check_window(100, 100);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().reason, Reason::kWindowExceeded);
  EXPECT_EQ(checked.error().extras->needed, 101U);
  EXPECT_EQ(checked.error().extras->limit, 100U);
  const auto detail = to_detail(checked.error(), "r1");
  EXPECT_EQ(detail.reason(), "window_exceeded");
  EXPECT_EQ(detail.needed(), 101U);
  EXPECT_EQ(detail.limit(), 100U);
  EXPECT_EQ(detail.request_id(), "r1");
  EXPECT_EQ(to_status(checked.error()).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(RequestCheck, RefusesAnEmptyPrompt) {
  const auto checked = check_window(0, 100);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().reason, Reason::kInvalidArgument);
}

TEST(ErrorDetail, SaysWhetherARetryHelps) {
  EXPECT_TRUE(to_detail(Error(Reason::kQueueFull, "x"), "").has_retry_after_seconds());
  EXPECT_FALSE(to_detail(Error(Reason::kInvalidArgument, "x"), "").has_retry_after_seconds());
}

}  // namespace
}  // namespace berth::worker
