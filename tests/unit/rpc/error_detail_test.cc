#include "supervisor/rpc/error_detail.h"

#include <gtest/gtest.h>

namespace berth::rpc {
namespace {

Error whole() {
  FailureEvidence failure;
  failure.id = "0190";
  failure.failure_class = "permanent";
  failure.reason = "unknown architecture";
  failure.since_unix_ms = 5;
  failure.exit_code = 1;
  failure.log_tail = {"line"};
  failure.command = {"berth-worker"};
  ErrorExtras extras;
  extras.param = "model";
  extras.retry_after_seconds = 2.5;
  extras.suggestions = {"demo"};
  extras.needed = 10;
  extras.limit = 5;
  extras.failure = failure;
  extras.holder = HolderInfo{"other", "loading", "context_probe", 7};
  extras.memory = MemoryShortage{"host", 10, 8, 4, 6, WouldFit{4096, 2}};
  return Error(Reason::kLoadFailed, "It failed.", extras);
}

TEST(ErrorDetail, T1_AnErrorKeepsItsCauseOnTheWire) {
  const v1::ErrorDetail detail = to_proto(whole(), "r-1", Audience::kAdmin);
  EXPECT_EQ(detail.request_id(), "r-1");
  const Error back = from_status(to_status(whole()), detail.SerializeAsString());
  EXPECT_EQ(back.reason, Reason::kLoadFailed);
  EXPECT_EQ(back.message, "It failed.");
  ASSERT_TRUE(back.extras);
  EXPECT_EQ(back.extras->param, "model");
  EXPECT_EQ(back.extras->retry_after_seconds, 2.5);
  EXPECT_EQ(back.extras->suggestions, std::vector<std::string>{"demo"});
  EXPECT_EQ(back.extras->needed, 10U);
  EXPECT_EQ(back.extras->limit, 5U);
  ASSERT_TRUE(back.extras->failure);
  EXPECT_EQ(back.extras->failure->failure_class, "permanent");
  EXPECT_EQ(back.extras->failure->exit_code, 1);
  EXPECT_EQ(back.extras->failure->log_tail, std::vector<std::string>{"line"});
  ASSERT_TRUE(back.extras->holder);
  EXPECT_EQ(back.extras->holder->state, "loading");
  EXPECT_EQ(back.extras->holder->job, "context_probe");
  ASSERT_TRUE(back.extras->memory);
  EXPECT_EQ(back.extras->memory->domain, "host");
  EXPECT_EQ(back.extras->memory->deficit_bytes, 6U);
  ASSERT_TRUE(back.extras->memory->would_fit);
  EXPECT_EQ(back.extras->memory->would_fit->context, 4096U);
}

TEST(ErrorDetail, ATrailerIsShortWhateverTheErrorHolds) {
  FailureEvidence failure;
  failure.reason = std::string(5000, 'r');
  failure.log_tail.assign(20, std::string(300, 'l'));
  failure.command.assign(30, "/a/long/path/to/something");
  ErrorExtras extras;
  extras.failure = failure;
  extras.suggestions.assign(3, std::string(2000, 'n'));
  const Error error(Reason::kLoadFailed, std::string(9000, 'm'), extras);
  const v1::ErrorDetail detail = to_proto(error, "r-1", Audience::kAdmin);
  const std::string trailer = to_trailer(detail);
  EXPECT_LT(trailer.size(), 4096U);
  EXPECT_LE(to_status(error).error_message().size(), kTrailerTextBytes);
  EXPECT_EQ(from_status(to_status(error), trailer).reason, Reason::kLoadFailed);
  EXPECT_EQ(detail.failure().log_tail_size(), 20) << "the event has it all";
}

TEST(ErrorDetail, LogAndCommandAreForAdmins) {
  const v1::ErrorDetail detail = to_proto(whole(), "", Audience::kClient);
  EXPECT_EQ(detail.failure().log_tail_size(), 0);
  EXPECT_EQ(detail.failure().command_size(), 0);
  EXPECT_EQ(detail.failure().reason(), "unknown architecture");
}

TEST(ErrorDetail, AStatusWithoutATrailerStillMeansSomething) {
  const grpc::Status gone(grpc::StatusCode::UNAVAILABLE, "Socket closed");
  EXPECT_EQ(from_status(gone, "").reason, Reason::kWorkerDied);
  EXPECT_EQ(from_status(gone, "not a message \xff").reason, Reason::kWorkerDied);
  EXPECT_EQ(from_status({grpc::StatusCode::DEADLINE_EXCEEDED, ""}, "").reason, Reason::kDeadline);
}

TEST(ErrorDetail, EveryReasonHasTheStatusOfTheTable) {
  EXPECT_EQ(to_status(Error(Reason::kUnknownModel, "")).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(to_status(Error(Reason::kWindowExceeded, "")).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(to_status(Error(Reason::kQueueFull, "")).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(to_status(Error(Reason::kConflict, "")).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(to_status(Error(Reason::kShuttingDown, "")).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(to_status(Error(Reason::kWorkerDied, "")).error_code(), grpc::StatusCode::INTERNAL);
}

}  // namespace
}  // namespace berth::rpc
