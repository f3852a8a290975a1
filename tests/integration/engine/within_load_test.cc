#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llama.h>

#include <fstream>
#include <string>

#include "tests/integration/engine/loading.h"
#include "worker/engine/llama_handles.h"

namespace berth::worker {
namespace {

using testing::HasSubstr;

// Any line of a known class that libllama writes stands for that of an allocation, which cannot be
// made to fail at will.
Status fail_while_libllama_says_why(const std::string& broken_file) {
  const ModelPointer model(
      llama_model_load_from_file(broken_file.c_str(), llama_model_default_params()));
  EXPECT_FALSE(model);
  return fail(Reason::kLoadFailed, "the model could not compute one token: -2");
}

TEST(WithinLoad, L6_L15_WhatLibllamaLogsMeanwhileDecidesTheClass) {
  const auto engine = load_well({.model_path = random_file({})});
  const auto broken = scratch_file("broken.gguf");
  std::ofstream(broken) << "this is no model, however long it is";
  const auto done =
      engine->do_within_load([&broken] { return fail_while_libllama_says_why(broken); });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().failure_class, "permanent");
  EXPECT_THAT(done.error().reason, HasSubstr("magic"));
}

TEST(WithinLoad, L6_L15_WithoutALineItsOwnErrorIsWhatIsKnown) {
  const auto engine = load_well({.model_path = random_file({})});
  const auto failed = [engine = engine.get()](const char* problem) {
    return engine
        ->do_within_load([problem]() -> Status { return fail(Reason::kLoadFailed, problem); })
        .error();
  };
  EXPECT_EQ(failed("computed nothing").failure_class, "unclassified");
  EXPECT_EQ(failed("computed nothing").reason, "computed nothing");
  EXPECT_EQ(failed("std::bad_alloc").failure_class, "resource");
  EXPECT_TRUE(engine->do_within_load([] { return Status(); }));
}

}  // namespace
}  // namespace berth::worker
