#include "worker/service/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth::worker {
namespace {

Result<Options> parse(const std::vector<const char*>& arguments) {
  return parse_options(arguments);
}

std::string problem(const std::vector<const char*>& arguments) {
  const auto options = parse(arguments);
  EXPECT_FALSE(options.has_value());
  return options ? "" : options.error().message;
}

TEST(Options, TakesBothForms) {
  const auto options = parse({"--model",
                              "/m.gguf",
                              "--socket=/run/s",
                              "--context",
                              "4096",
                              "--sequences=4",
                              "--threads",
                              "2",
                              "--batch",
                              "256",
                              "--kv-type",
                              "q8_0",
                              "--flash-attention",
                              "on",
                              "--chat-template",
                              "t.jinja",
                              "--instance",
                              "0190b1a0-0000-7000-8000-000000000001",
                              "--notify-fd",
                              "3",
                              "--parent-stdin"});
  ASSERT_TRUE(options.has_value()) << options.error().message;
  EXPECT_EQ(options->action, Options::Action::kServe);
  EXPECT_EQ(options->engine.model_path, "/m.gguf");
  EXPECT_EQ(options->socket, "/run/s");
  EXPECT_EQ(options->engine.context, 4096U);
  EXPECT_EQ(options->engine.sequences, 4U);
  EXPECT_EQ(options->engine.threads, 2U);
  EXPECT_EQ(options->engine.batch, 256U);
  EXPECT_EQ(options->engine.kv_type, "q8_0");
  EXPECT_EQ(options->engine.flash_attention, "on");
  EXPECT_EQ(options->chat_template_file, "t.jinja");
  EXPECT_EQ(options->instance, "0190b1a0-0000-7000-8000-000000000001");
  EXPECT_EQ(options->notify_fd, 3);
  EXPECT_TRUE(options->parent_stdin);
}

TEST(Options, SaysWhatIsWrong) {
  using testing::HasSubstr;
  EXPECT_THAT(problem({}), HasSubstr("--model"));
  EXPECT_THAT(problem({"--model", "m"}), HasSubstr("--socket"));
  EXPECT_THAT(problem({"--model"}), HasSubstr("needs a value"));
  EXPECT_THAT(problem({"--model", ""}), HasSubstr("empty"));
  EXPECT_THAT(problem({"--modle", "x"}), HasSubstr("--model"));
  EXPECT_THAT(problem({"model.gguf"}), HasSubstr("no option"));
  EXPECT_THAT(problem({"--context", "ten"}), HasSubstr("whole number from 16"));
  EXPECT_THAT(problem({"--context", "99999999999999999999"}), HasSubstr("whole number"));
  EXPECT_THAT(problem({"--sequences", "0"}), HasSubstr("from 1 to 64"));
  EXPECT_THAT(problem({"--kv-type", "f17"}), HasSubstr("f32, f16"));
  EXPECT_THAT(problem({"--flash-attention", "maybe"}), HasSubstr("auto, on, off"));
  EXPECT_THAT(problem({"--instance", "7"}), HasSubstr("UUID"));
  EXPECT_THAT(problem({"--notify-fd", "1"}), HasSubstr("from 3"));
  EXPECT_THAT(problem({"--parent-stdin=yes"}), HasSubstr("takes no value"));
  EXPECT_THAT(problem({"--model", "a", "--model", "b"}), HasSubstr("twice"));
  EXPECT_THAT(
      problem({"--model", "m", "--socket", "s", "--kv-type", "q8_0", "--flash-attention", "off"}),
      HasSubstr("flash attention"));
}

TEST(Options, OneShotActionsNeedNothingElse) {
  EXPECT_EQ(parse({"--version"})->action, Options::Action::kVersion);
  EXPECT_EQ(parse({"--devices"})->action, Options::Action::kDevices);
  EXPECT_EQ(parse({"--help"})->action, Options::Action::kHelp);
}

}  // namespace
}  // namespace berth::worker
