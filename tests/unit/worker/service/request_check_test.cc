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

EngineFacts facts() {
  EngineFacts made;
  made.window = 512;
  made.vocabulary = 1000;
  return made;
}

v1::GenerateRequest request() {
  v1::GenerateRequest made;
  made.set_prompt("x");
  return made;
}

Error problem(const v1::GenerateRequest& made) {
  const auto job = check_request(made, facts());
  EXPECT_FALSE(job.has_value());
  if (job) return {};
  EXPECT_EQ(job.error().reason, Reason::kInvalidArgument);
  return job.error();
}

TEST(RequestCheck, UsesTheDefaultsOfTheProtocol) {
  const auto job = check_request(request(), facts());
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->sampling.temperature, 0.8F);
  EXPECT_EQ(job->sampling.top_logprobs, std::nullopt);
  EXPECT_EQ(job->job->max_tokens, std::numeric_limits<std::uint32_t>::max());
}

TEST(RequestCheck, AnyMaxTokensIsTaken) {
  for (const std::uint32_t count : {0U, 1U, 4294967295U}) {
    auto made = request();
    made.set_max_tokens(count);
    const auto job = check_request(made, facts());
    ASSERT_TRUE(job.has_value());
    EXPECT_EQ(job->job->max_tokens, count);
  }
}

TEST(RequestCheck, RefusesSamplingOutOfRange) {
  auto made = request();
  made.mutable_sampling()->set_temperature(std::nanf(""));
  EXPECT_EQ(problem(made).extras->param, "sampling.temperature");
}

TEST(RequestCheck, TopLogprobsAreZeroToTwenty) {
  auto made = request();
  for (const std::uint32_t count : {0U, 20U}) {
    made.set_top_logprobs(count);
    const auto job = check_request(made, facts());
    ASSERT_TRUE(job.has_value());
    EXPECT_EQ(job->sampling.top_logprobs, count);
  }
  made.set_top_logprobs(21);
  EXPECT_EQ(problem(made).extras->param, "top_logprobs");
  EXPECT_EQ(problem(made).message, "top_logprobs must be from 0 to 20, not 21.");
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

TEST(RequestCheck, AStopTextOfAMegabyteIsRefused) {
  auto made = request();
  made.add_stop(std::string(1U << 20U, 'x'));
  EXPECT_EQ(problem(made).extras->param, "stop[0]");
  EXPECT_THAT(problem(made).message, HasSubstr("1048576"));
}

TEST(RequestCheck, AModelForEmbeddingsGeneratesNothing) {
  auto other = facts();
  other.purpose = Purpose::kEmbed;
  const auto job = check_request(request(), other);
  ASSERT_FALSE(job.has_value());
  EXPECT_EQ(job.error().reason, Reason::kInvalidArgument);
  EXPECT_EQ(job.error().extras->param, "model");
}

TEST(RequestCheck, ScopesAreBounded) {
  auto made = request();
  made.set_cache_scope(std::string(1025, 'x'));
  EXPECT_EQ(problem(made).extras->param, "cache_scope");
}

TEST(RequestCheck, NamesTheFirstTokenThatDoesNotExist) {
  v1::TokenInput input;
  for (const int id : {0, 99, 100}) input.add_ids(id);
  const auto tokens = check_tokens(input.ids(), 100, "tokens.ids");
  ASSERT_FALSE(tokens.has_value());
  EXPECT_EQ(tokens.error().extras->param, "tokens.ids[2]");
  EXPECT_THAT(tokens.error().message, HasSubstr("0 to 99"));
  input.set_ids(2, -1);
  EXPECT_FALSE(check_tokens(input.ids(), 100, "tokens.ids").has_value());
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

TEST(RequestCheck, T93_AbsurdTextsAreRefusedByTheirLengthWithBothNumbers) {
  EXPECT_TRUE(check_text_length(std::string(99 * 10, 'x'), 10, 100).has_value());
  const auto checked = check_text_length(std::string(99 * 10 + 1, 'x'), 10, 100);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().reason, Reason::kWindowExceeded);
  EXPECT_EQ(checked.error().extras->needed, 101U);
  EXPECT_EQ(checked.error().extras->limit, 100U);
  EXPECT_THAT(checked.error().message, HasSubstr("991 bytes, which are at least 100 tokens"));
}

TEST(RequestCheck, T93_TextsThatMayHaveFewTokensAreNotRefusedByTheirLength) {
  const std::string absurd(std::size_t{4} << 20U, 'x');
  EXPECT_TRUE(check_text_length(absurd, 0, 100).has_value());  // not known
  // Tokenizers may strip these.
  EXPECT_TRUE(check_text_length(std::string(1 << 20, ' '), 10, 100).has_value());
  std::string umlauts;
  for (int i = 0; i < 990; ++i) umlauts += "ä";  // may become one letter of one byte
  EXPECT_TRUE(check_text_length(umlauts, 10, 100).has_value());
  EXPECT_FALSE(check_text_length(umlauts + "ä", 10, 100).has_value());
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
