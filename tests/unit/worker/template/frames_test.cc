#include "worker/template/frames.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <string_view>
#include <variant>

namespace berth::worker {
namespace {

std::string_view body(std::string_view frame) {
  EXPECT_EQ(frame_size(frame), frame.size() - FrameBounds::kHeader);
  return frame.substr(FrameBounds::kHeader);
}

TEST(Frames, CarryCalls) {
  const auto setup = encode_setup({"source", "<s>", "", {"a", "bc"}});
  const auto read = decode_call(body(setup));
  ASSERT_TRUE(read.has_value());
  const auto& got = std::get<TemplateSetup>(*read);
  EXPECT_EQ(got.source + "|" + got.bos + "|" + got.eos, "source|<s>|");
  EXPECT_EQ(got.control_texts, (std::vector<std::string>{"a", "bc"}));

  const auto call = encode_request({"m", "t", "v", false}, false);
  const auto render = decode_call(body(call));
  ASSERT_TRUE(render.has_value());
  const auto& request = std::get<RenderCall>(*render).request;
  EXPECT_EQ(request.messages_json, "m");
  EXPECT_EQ(request.tools_json, "t");
  EXPECT_EQ(request.variables_json, "v");
  EXPECT_FALSE(request.add_generation_prompt);
  EXPECT_TRUE(std::holds_alternative<FlattenCall>(*decode_call(body(encode_request({}, true)))));
}

TEST(Frames, CarryAnswers) {
  EXPECT_TRUE(std::holds_alternative<SetupDone>(*decode_answer(body(encode_answer(SetupDone{})))));
  const auto prompt = decode_answer(
      body(encode_answer(RenderedPrompt{{{"a", false}, {std::string("\0b", 2), true}}, true})));
  ASSERT_TRUE(prompt.has_value());
  EXPECT_TRUE(std::get<RenderedPrompt>(*prompt).tools_described);
  const auto& list = std::get<RenderedPrompt>(*prompt).parts;
  ASSERT_EQ(list.size(), 2U);
  EXPECT_TRUE(list[1].literal);
  EXPECT_EQ(list[1].text.size(), 2U);

  ErrorExtras extras;
  extras.param = "chat";
  const auto error =
      decode_answer(body(encode_answer(Error(Reason::kInvalidArgument, "no", extras))));
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(std::get<Error>(*error).reason, Reason::kInvalidArgument);
  EXPECT_EQ(std::get<Error>(*error).message, "no");
  EXPECT_EQ(std::get<Error>(*error).extras->param, "chat");

  const auto flat =
      decode_answer(body(encode_answer(FlatConversation{{{"user", "x"}}, {"1", "2"}})));
  ASSERT_TRUE(flat.has_value());
  EXPECT_EQ(std::get<FlatConversation>(*flat).messages.at(0).content, "x");
}

// The worker reads what a template that has taken berth-template over may write.
RC_GTEST_PROP(Frames, AnyBytesAreReadOrRefused, (const std::string& bytes)) {
  (void)decode_answer(bytes);
  (void)decode_call(bytes);
}

RC_GTEST_PROP(Frames, CutAnswersAreRefused, (const std::string& text)) {
  const auto frame = encode_answer(RenderedPrompt{{{text, true}}, false});
  const auto whole = body(frame);
  const auto size = *rc::gen::inRange<std::size_t>(0, whole.size());
  RC_ASSERT(!decode_answer(whole.substr(0, size)).has_value());
}

TEST(Frames, RefuseLongLists) {
  const std::string list("\x05\x00\xff\xff\xff\x7f", 6);
  EXPECT_FALSE(decode_answer(list).has_value());
}

}  // namespace
}  // namespace berth::worker
