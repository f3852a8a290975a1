// libllama's own chat templates: by name, and where the model's cannot be read.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/worker/worker_process.h"

namespace berth::worker {
namespace {

Outcome answer(WorkerProcess& worker) {
  const auto loaded = worker.wait_loaded();
  EXPECT_TRUE(loaded && loaded->has_ready()) << worker.log();
  EXPECT_TRUE(!loaded || loaded->ready().can_chat());
  return worker.generate(greedy_chat("What is the capital of France?"));
}

TEST(BuiltinTemplate, ByNameGivesWhatTheModelsOwnGives) {
  WorkerProcess own({tinychat(), {"--context", "512"}});
  WorkerProcess named({tinychat(), {"--context", "512", "--chat-template", "chatml"}});
  const auto expected = answer(own);
  const auto got = answer(named);
  ASSERT_TRUE(got.status.ok()) << got.status.error_message();
  EXPECT_FALSE(got.text.empty());
  EXPECT_EQ(got.text, expected.text);
}

TEST(BuiltinTemplate, L7_AnUnknownNameIsATypedFailureWithTheNames) {
  WorkerProcess worker({tinychat(), {"--chat-template", "nosuchtemplate"}});
  const auto loaded = worker.wait_loaded();
  ASSERT_TRUE(loaded && loaded->has_load_failed()) << worker.log();
  EXPECT_EQ(loaded->load_failed().class_(), "permanent");
  EXPECT_THAT(loaded->load_failed().reason(), testing::HasSubstr("nosuchtemplate"));
  EXPECT_THAT(loaded->load_failed().reason(), testing::HasSubstr(", chatml, "));
  EXPECT_EQ(worker.wait_exit().code, 1);
}

}  // namespace
}  // namespace berth::worker
