#include "supervisor/core/failure.h"

#include <gtest/gtest.h>

#include <optional>

#include "supervisor/core/exit_status.h"

namespace berth::core {
namespace {

TEST(Failure, L18_ClassesHaveStableNames) {
  for (const char* name : {"permanent", "resource", "oom", "crash", "crash_loop", "stalled",
                           "timeout", "launch", "unclassified"}) {
    EXPECT_EQ(failure_class_name(failure_class_from_name(name)), name);
    EXPECT_FALSE(failure_class_sentence(failure_class_from_name(name)).empty());
  }
}

// T14: unknown is "unclassified", never a guess.
TEST(Failure, T14_AnUnknownClassIsUnclassified) {
  EXPECT_EQ(failure_class_from_name("corrupt"), FailureClass::kUnclassified);
  EXPECT_EQ(failure_class_from_name(""), FailureClass::kUnclassified);
}

TEST(Failure, L21_AWorkerNamesOnlyWhatItCanKnow) {
  for (const char* name : {"permanent", "resource", "crash"}) {
    EXPECT_EQ(failure_class_name(failure_class_said_by_worker(name)), name);
  }
  for (const char* name :
       {"oom", "crash_loop", "stalled", "timeout", "launch", "unclassified", "corrupt", ""}) {
    EXPECT_EQ(failure_class_said_by_worker(name), FailureClass::kUnclassified) << name;
  }
}

TEST(Failure, SentenceNamesTheExitAndTheReason) {
  EXPECT_EQ(failure_sentence({FailureClass::kUnclassified, "", Exited{1}}), "exit 1");
  EXPECT_EQ(failure_sentence({FailureClass::kPermanent, "bad magic", std::nullopt}), "bad magic");
  EXPECT_EQ(failure_sentence({FailureClass::kCrash, "GGML_ASSERT", Signalled{6, false}}),
            "SIGABRT: GGML_ASSERT");
  EXPECT_FALSE(failure_sentence({FailureClass::kTimeout, "", std::nullopt}).empty());
}

}  // namespace
}  // namespace berth::core
