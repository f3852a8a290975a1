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
  EXPECT_EQ(options->chat_template, "t.jinja");
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
  EXPECT_THAT(problem({"--sequences", "0"}), HasSubstr("from 1 to 1024"));
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
  EXPECT_EQ(parse({"--knows-architecture", "foo"})->action, Options::Action::kArchitecture);
  EXPECT_EQ(parse({"--knows-architecture=foo"})->architecture, "foo");
}

TEST(Options, PlacementAndWhatGoesWithTheModel) {
  const auto options =
      parse({"--model", "m", "--socket", "s", "--device", "Vulkan0,Vulkan1", "--device=CUDA0",
             "--device-layers", "12", "--device-split", "3,1,0.5", "--adapter", "/a=b.gguf",
             "--adapter", "/c.gguf=-0.5", "--draft", "/d.gguf", "--draft-tokens", "4"});
  ASSERT_TRUE(options.has_value()) << options.error().message;
  const auto& engine = options->engine;
  EXPECT_EQ(engine.devices, (std::vector<std::string>{"Vulkan0", "Vulkan1", "CUDA0"}));
  EXPECT_EQ(engine.device_layers, 12U);
  EXPECT_EQ(engine.device_split, (std::vector<float>{3, 1, 0.5F}));
  EXPECT_EQ(engine.adapters,
            (std::vector<std::pair<std::string, float>>{{"/a=b.gguf", 1.0F}, {"/c.gguf", -0.5F}}));
  EXPECT_EQ(engine.draft_path, "/d.gguf");
  EXPECT_EQ(engine.draft_tokens, 4U);
  EXPECT_EQ(engine.purpose, Purpose::kGenerate);
}

TEST(Options, Embeddings) {
  const auto options =
      parse({"--model", "m", "--socket", "s", "--embeddings", "--pooling", "mean"});
  ASSERT_TRUE(options.has_value()) << options.error().message;
  EXPECT_EQ(options->engine.purpose, Purpose::kEmbed);
  EXPECT_EQ(options->engine.pooling, "mean");
}

TEST(Options, SaysWhatIsWrongWithAPlacement) {
  using testing::HasSubstr;
  const auto served = [](std::vector<const char*> more) {
    more.insert(more.end(), {"--model", "m", "--socket", "s"});
    return problem(more);
  };
  EXPECT_THAT(served({"--device", "Vulkan0,"}), HasSubstr("names with commas"));
  EXPECT_THAT(served({"--device-layers", "3"}), HasSubstr("need --device"));
  EXPECT_THAT(served({"--device", "A", "--device-layers", "-1"}), HasSubstr("whole number"));
  EXPECT_THAT(served({"--device", "A", "--device-split", "1,2"}), HasSubstr("2 shares for 1"));
  for (const char* const split : {"1,x", "nan", "inf", "-1", "1e39", "1 ", ""}) {
    EXPECT_THAT(served({"--device", "A", "--device-split", split}), HasSubstr("numbers from 0"))
        << split;
  }
  EXPECT_THAT(served({"--device", "A,B", "--device-split", "0,0"}), HasSubstr("not 0"));
  EXPECT_THAT(served({"--device", "A,B", "--device-split", "3e38,3e38"}), HasSubstr("not 0"));
  EXPECT_THAT(served({"--adapter", "=1"}), HasSubstr("a path"));
  EXPECT_THAT(served({"--adapter", "/a=1000"}), HasSubstr("-100 to 100"));
  EXPECT_THAT(served({"--draft", ""}), HasSubstr("empty"));
  EXPECT_THAT(served({"--draft-tokens", "17"}), HasSubstr("from 1 to 16"));
  EXPECT_THAT(served({"--embeddings", "--draft", "/d"}), HasSubstr("do not go together"));
  EXPECT_THAT(served({"--pooling", "rank"}), HasSubstr("mean, cls, last"));
  EXPECT_THAT(served({"--draft", "/d", "--sequences", "8", "--batch", "64"}),
              HasSubstr("at least 72"));
}

// An infinite or missing scale is no scale: it belongs to the path.
TEST(Options, AdapterScalesAreNumbers) {
  for (const char* const path : {"/a=inf", "/a=nan", "/a=", "/a=1x"}) {
    const auto options = parse({"--model", "m", "--socket", "s", "--adapter", path});
    ASSERT_TRUE(options.has_value()) << path;
    EXPECT_EQ(options->engine.adapters.at(0).first, path);
    EXPECT_EQ(options->engine.adapters.at(0).second, 1.0F);
  }
}

TEST(Options, TheBatchHoldsATokenOfEverySequence) {
  const auto parse = [](std::vector<const char*> more) {
    more.insert(more.end(), {"--model", "m", "--socket", "s"});
    return parse_options(more);
  };
  const auto many = parse({"--sequences", "1000"});
  ASSERT_TRUE(many.has_value()) << many.error().message;
  EXPECT_EQ(many->engine.batch, 1000U);
  EXPECT_EQ(parse({"--sequences", "4"})->engine.batch, 512U);
  const auto few = parse({"--sequences", "1000", "--batch", "64"});
  ASSERT_FALSE(few.has_value());
  EXPECT_NE(few.error().message.find("at least 1000"), std::string::npos);
}

TEST(Options, L26_SandboxIsOnUnlessToldOtherwise) {
  EXPECT_TRUE(parse({"--model", "m", "--socket", "s"})->sandbox);
  EXPECT_TRUE(parse({"--model", "m", "--socket", "s", "--sandbox", "on"})->sandbox);
  EXPECT_FALSE(parse({"--model", "m", "--socket", "s", "--sandbox=off"})->sandbox);
  EXPECT_FALSE(parse({"--model", "m", "--socket", "s", "--sandbox", "maybe"}));
  EXPECT_EQ(parse({"--sandbox-report"})->action, Options::Action::kSandboxReport);
}

}  // namespace
}  // namespace berth::worker
