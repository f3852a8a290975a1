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

const Marks kMarks{std::string(Marks::kDigits, '1'), std::string(Marks::kDigits, '2')};

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

  const auto flat = decode_answer(body(encode_answer(FlatConversation{{{"user", "x"}}, kMarks})));
  ASSERT_TRUE(flat.has_value());
  EXPECT_EQ(std::get<FlatConversation>(*flat).messages.at(0).content, "x");
}

TEST(Frames, CarryNoMarksOfFlatConversationsWithoutAny) {
  const auto flat = decode_answer(body(encode_answer(FlatConversation{{{"user", "x"}}, {}})));
  ASSERT_TRUE(flat.has_value());
  EXPECT_EQ(std::get<FlatConversation>(*flat).marks.begin, "");
}

// A begin without an end would have the worker cut texts behind their end.
TEST(Frames, L26_RefuseMarksThatAreNone) {
  const std::string letters(Marks::kDigits, 'x');
  for (const auto& marks : {Marks{kMarks.begin, ""}, Marks{"", kMarks.end}, Marks{"1", "2"},
                            Marks{letters, kMarks.end}, Marks{kMarks.begin + "1", kMarks.end}}) {
    EXPECT_FALSE(decode_answer(body(encode_answer(FlatConversation{{{"user", "x"}}, marks}))))
        << marks.begin << " " << marks.end;
  }
}

// Clients and logs get errors as they are; only some reasons can come of rendering.
TEST(Frames, L26_ErrorsAreMadeHarmless) {
  ErrorExtras extras;
  extras.param = "a\nb\x1b[2J" + std::string(5000, 'x');
  const auto read = [&](Reason reason) {
    const auto answer =
        decode_answer(body(encode_answer(Error(reason, extras.param + "\xff", extras))));
    EXPECT_TRUE(answer.has_value());
    return std::get<Error>(*answer);
  };
  const auto error = read(Reason::kInternal);
  EXPECT_EQ(error.reason, Reason::kInternal);
  EXPECT_EQ(error.message.size(), 1000U);
  EXPECT_EQ(error.message.substr(0, 8), "a b[2Jxx");
  EXPECT_EQ(error.extras->param, error.message);
  EXPECT_EQ(read(Reason::kInvalidArgument).reason, Reason::kInvalidArgument);
  EXPECT_EQ(read(Reason::kShuttingDown).reason, Reason::kTemplateFailed);
  EXPECT_EQ(read(Reason::kDeadline).reason, Reason::kTemplateFailed);
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
