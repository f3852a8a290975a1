#include "supervisor/core/entitlement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "supervisor/core/no_room.h"

namespace berth::core {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Caller admin() {
  return {.role = Role::kAdmin, .entitled = true};
}
Caller client() {
  return {.role = Role::kClient, .entitled = true};
}
Caller stranger() {
  return {};
}

const std::vector<Reason> kReasons = {
#define BERTH_REASON(id, name, http, grpc, retry, sentence) Reason::id,
#include "common/reasons.def"
#undef BERTH_REASON
};

Error full_error(Reason reason) {
  ErrorExtras extras;
  extras.param = "model";
  extras.retry_after_seconds = 2.5;
  extras.suggestions = {"secret-model"};
  extras.needed = 7;
  extras.limit = 5;
  FailureEvidence failure;
  failure.id = "1";
  failure.failure_class = "crash";
  failure.reason = "secret-reason";
  failure.log_tail = {"secret-line"};
  failure.command = {"/secret/program"};
  extras.failure = failure;
  extras.holder = HolderInfo{"secret-model", "ready", "context_probe", 1};
  extras.memory = MemoryShortage{"GPU-secret", 1, 2, 3, 4};
  return {reason, "secret-model cannot open /secret/file.gguf of secret-host.", std::move(extras)};
}

// All text that a caller could read.
std::string text_of(const Error& error) {
  std::string text = error.message;
  if (!error.extras) return text;
  const ErrorExtras& extras = *error.extras;
  for (const std::string& name : extras.suggestions) text += "|" + name;
  if (extras.failure) {
    text += "|" + extras.failure->reason;
    for (const std::string& line : extras.failure->log_tail) text += "|" + line;
    for (const std::string& word : extras.failure->command) text += "|" + word;
  }
  if (extras.holder) text += "|" + extras.holder->model;
  if (extras.memory) text += "|" + extras.memory->domain;
  return text;
}

TEST(Entitlement, AdminsSeeEverything) {
  for (const Reason reason : kReasons) {
    const Error error = full_error(reason);
    EXPECT_EQ(text_of(for_caller(error, admin())), text_of(error));
  }
}

TEST(Entitlement, I12_StatusAndHeadersAreTheSameForEverybody) {
  for (const Reason reason : kReasons) {
    for (const Caller& caller : {admin(), client(), stranger()}) {
      const Error cut = for_caller(full_error(reason), caller);
      EXPECT_EQ(cut.reason, reason);
      ASSERT_TRUE(cut.extras);
      EXPECT_EQ(cut.extras->retry_after_seconds, 2.5);
      EXPECT_EQ(cut.extras->param, "model");
      EXPECT_THAT(cut.message, Not(IsEmpty()));
    }
  }
}

TEST(Entitlement, I12_StrangersAreToldNothingOfTheServersOtherWork) {
  for (const Reason reason :
       {Reason::kUnknownModel, Reason::kConflict, Reason::kQueueFull, Reason::kNoRoom,
        Reason::kLoadFailed, Reason::kDraining, Reason::kShuttingDown, Reason::kStoreUnavailable,
        Reason::kStoreBusy, Reason::kDeadline, Reason::kInsufficientMemory, Reason::kPressureAbort,
        Reason::kWorkerDied, Reason::kInternal}) {
    const Error cut = for_caller(full_error(reason), stranger());
    EXPECT_EQ(cut.message, reason_info(reason).sentence);
    EXPECT_THAT(text_of(cut), Not(HasSubstr("secret")));
    EXPECT_EQ(cut.extras->needed, std::nullopt);
    EXPECT_EQ(cut.extras->limit, std::nullopt);
    EXPECT_FALSE(cut.extras->failure);
  }
}

TEST(Entitlement, StrangersAreToldWhatIsWrongWithTheirOwnRequest) {
  ErrorExtras extras;
  extras.needed = 9000;
  extras.limit = 4096;
  const Error error(Reason::kWindowExceeded, "The prompt has 9000 tokens; 4096 fit.", extras);
  const Error cut = for_caller(error, stranger());
  EXPECT_EQ(cut.message, error.message);
  EXPECT_EQ(cut.extras->needed, 9000U);
  EXPECT_EQ(cut.extras->limit, 4096U);
  const Error plain = for_caller({Reason::kInvalidArgument, "n must be 1."}, stranger());
  EXPECT_EQ(plain.message, "n must be 1.");
  EXPECT_FALSE(plain.extras);
}

TEST(Entitlement, ClientsSeeNoPathsCommandsOrLogs) {
  const Error cut = for_caller(full_error(Reason::kLoadFailed), client());
  EXPECT_EQ(cut.message, "secret-model cannot open <path> of secret-host.");
  EXPECT_THAT(cut.extras->failure->log_tail, IsEmpty());
  EXPECT_THAT(cut.extras->failure->command, IsEmpty());
  EXPECT_EQ(cut.extras->failure->reason, "secret-reason");
  EXPECT_EQ(cut.extras->holder->model, "secret-model");
  EXPECT_EQ(cut.extras->memory->domain, "GPU-secret");

  for (const char* text :
       {"cannot open '/srv/my models/x.gguf'", "cannot open (/srv/my models/x.gguf)",
        "path=/srv/x.gguf is gone", "/srv/x.gguf is gone", "in ~/models/x.gguf"}) {
    const std::string message = for_caller({Reason::kInternal, text}, client()).message;
    EXPECT_THAT(message, HasSubstr("<path>")) << text;
    EXPECT_THAT(message, Not(HasSubstr("x.gguf"))) << text;
    EXPECT_THAT(message, Not(HasSubstr("srv"))) << text;
  }
  for (const char* text : {"org/model could not be loaded: exit status 1.", "40 tokens/s"}) {
    EXPECT_EQ(for_caller({Reason::kLoadFailed, text}, client()).message, text);
  }
  EXPECT_EQ(for_caller({Reason::kNotFound, "There is no route /v2/x."}, client()).message,
            "There is no route /v2/x.");
}

WallTime wall(std::int64_t seconds) {
  return WallTime(std::chrono::seconds(seconds));
}

NoRoom held_by_a_probe() {
  NoRoom what;
  what.model = "qwen";
  what.memory = {"host", 8ULL << 30U, 16ULL << 30U, 3ULL << 30U, 5ULL << 30U};
  what.holder = HolderInfo{"glm", "loading", "context_probe", 1'000'000};
  what.holder_resident = true;
  what.gives_way_within = milliseconds(15'000);
  what.retry_after_seconds = 15;
  return what;
}

TEST(NoRoom, I11_NamesTheHolderItsJobAndHowItEnds) {
  const Error error = no_room_error(held_by_a_probe(), wall(1'250));
  EXPECT_EQ(error.reason, Reason::kNoRoom);
  EXPECT_THAT(error.message, HasSubstr("There is no memory for qwen now"));
  EXPECT_THAT(error.message, HasSubstr("8.00 GiB of host"));
  EXPECT_THAT(error.message, HasSubstr("glm holds it and is loading"));
  EXPECT_THAT(error.message, HasSubstr("the server's own idle work, a context probe"));
  EXPECT_THAT(error.message, HasSubstr("been at it for 4 min 10 s"));
  EXPECT_THAT(error.message, HasSubstr("not for the size of your request"));
  EXPECT_THAT(error.message, HasSubstr("gives way to it, within 15.0 s"));
  EXPECT_EQ(error.extras->holder->job, "context_probe");
  EXPECT_EQ(error.extras->memory->deficit_bytes, 5ULL << 30U);
  EXPECT_EQ(error.extras->retry_after_seconds, 15);
}

TEST(NoRoom, I11_OnlyAHolderThatIsResidentIsNamed) {
  NoRoom what = held_by_a_probe();
  what.holder_resident = false;
  const Error error = no_room_error(what, wall(1'250));
  EXPECT_THAT(error.message, Not(HasSubstr("glm")));
  EXPECT_THAT(error.message, Not(HasSubstr("idle work")));
  EXPECT_FALSE(error.extras->holder);
}

TEST(NoRoom, I12_StrangersGetTheSameRefusalWithoutNames) {
  const Error error = no_room_error(held_by_a_probe(), wall(1'250));
  const Error cut = for_caller(error, stranger());
  EXPECT_EQ(cut.reason, error.reason);
  EXPECT_EQ(cut.extras->retry_after_seconds, error.extras->retry_after_seconds);
  EXPECT_EQ(cut.message, "There is no memory for the model now.");
  EXPECT_FALSE(cut.extras->holder);
  EXPECT_FALSE(cut.extras->memory);
}

TEST(NoRoom, I13_ABudgetThatIsReallyFullNamesNoJob) {
  NoRoom what = held_by_a_probe();
  what.holder->job.clear();
  what.holder->state = "ready";
  const Error error = no_room_error(what, wall(1'250));
  EXPECT_THAT(error.message, HasSubstr("glm holds it and is ready."));
  EXPECT_THAT(error.message, Not(HasSubstr("idle work")));
  what.holder.reset();
  EXPECT_THAT(no_room_error(what, wall(1'250)).message, Not(HasSubstr("glm")));
}

TEST(NoRoom, AClockThatWasSetBackGivesNoNegativeTime) {
  EXPECT_THAT(no_room_error(held_by_a_probe(), wall(0)).message, HasSubstr("at it for 0 ms"));
}

TEST(MessageForLog, QuotesNeitherClientsNorPrograms) {
  ErrorExtras extras;
  extras.param = "messages[0].content";
  EXPECT_EQ(message_for_log({Reason::kInvalidArgument, "not \"my secret\".", extras}),
            "The request or a setting has a wrong value. The field is messages[0].content.");
  extras.param = "logit_bias.my secret";
  EXPECT_EQ(message_for_log({Reason::kInvalidArgument, "not \"my secret\".", extras}),
            "The request or a setting has a wrong value. The field is logit_bias.");
  EXPECT_THAT(message_for_log({Reason::kTemplateFailed, "my secret"}), Not(HasSubstr("secret")));
  ErrorExtras quoting;
  quoting.quotes = true;
  EXPECT_EQ(message_for_log({Reason::kInternal, "The program answered 500: my secret", quoting}),
            reason_info(Reason::kInternal).sentence);
  EXPECT_EQ(message_for_log({Reason::kInternal, "The stream broke."}), "The stream broke.");
}

}  // namespace
}  // namespace berth::core
