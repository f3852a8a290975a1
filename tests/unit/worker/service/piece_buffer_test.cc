#include "worker/service/piece_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/fake_engine/fake_engine.h"
#include "worker/service/answer_sink.h"
#include "worker/service/tool_call_id.h"

namespace berth::worker {
namespace {

v1::Token piece_of(int tokens, int logprobs, std::size_t token_bytes, const std::string& text) {
  v1::Token piece;
  piece.set_text(text);
  for (int i = 0; i < tokens; ++i) {
    piece.add_ids(i);
    if (logprobs == 0) continue;
    auto& entry = *piece.add_logprobs();
    entry.mutable_chosen()->set_text(std::string(token_bytes, 'x'));
    for (int other = 0; other < logprobs; ++other) {
      entry.add_top()->set_text(std::string(token_bytes, 'y'));
    }
  }
  return piece;
}

TEST(PieceBuffer, TokensWithoutTextAreSentWithTheNextText) {
  PieceBuffer buffer;
  EXPECT_FALSE(buffer.due(true));
  auto silent = piece_of(3, 0, 0, "");
  buffer.add(silent);
  EXPECT_FALSE(buffer.due(false));
  EXPECT_TRUE(buffer.due(true));
  auto spoken = piece_of(1, 0, 0, "abc");
  buffer.add(spoken);
  EXPECT_TRUE(buffer.due(false));
  v1::Token sent;
  buffer.take(sent);
  EXPECT_EQ(sent.text(), "abc");
  EXPECT_EQ(sent.ids_size(), 4);
  EXPECT_FALSE(buffer.due(true));
}

TEST(PieceBuffer, SixtyFourSilentTokensAreSent) {
  PieceBuffer buffer;
  auto silent = piece_of(PieceBuffer::kMaxSilentTokens, 0, 0, "");
  buffer.add(silent);
  EXPECT_TRUE(buffer.due(false));
}

TEST(PieceBuffer, SilentTokensOfTwentyLogprobsAreDueWhenTheyFillIt) {
  PieceBuffer buffer;
  int pieces = 0;
  while (buffer.has_room()) {
    auto silent = piece_of(1, 20, 200, "");
    buffer.add(silent);
    ++pieces;
  }
  EXPECT_LT(pieces, PieceBuffer::kMaxSilentTokens);
  EXPECT_TRUE(buffer.due(false));
}

// Else it would be closed with nothing on the way whose end could open it.
RC_GTEST_PROP(PieceBuffer, WhatHasNoRoomIsDue, ()) {
  PieceBuffer buffer;
  const auto pieces = *rc::gen::inRange(1, 100);
  for (int i = 0; i < pieces; ++i) {
    auto piece = piece_of(
        *rc::gen::inRange(0, 40), *rc::gen::inRange(0, 21), *rc::gen::inRange<std::size_t>(0, 300),
        std::string(*rc::gen::element(std::size_t{0}, std::size_t{0}, std::size_t{9}), 'x'));
    buffer.add(piece);
    RC_ASSERT(buffer.has_room() || buffer.due(false));
    if (!buffer.due(false)) continue;
    v1::Token sent;
    buffer.take(sent);
    RC_ASSERT(buffer.has_room());
  }
}

// As a stream does whose client reads at once.
class Stream final : public AnswerReceiver {
 public:
  void on_prefill(std::uint32_t /*done*/, std::uint32_t /*total*/) override {}
  void on_piece(v1::Token& piece) override {
    buffer_.add(piece);
    send(false);
  }
  void on_end(JobEnd /*end*/) override { send(true); }
  [[nodiscard]] bool has_room() const override { return buffer_.has_room(); }
  [[nodiscard]] bool cancelled() const override { return false; }

  int ids = 0;
  std::vector<std::string> calls;

 private:
  void send(bool last) {
    if (!buffer_.due(last)) return;
    v1::Token sent;
    buffer_.take(sent);
    ids += sent.ids_size();
    for (const auto& call : sent.tool_calls()) calls.push_back(call.name());
  }

  PieceBuffer buffer_;
};

TEST(PieceBuffer, ACallWhoseArgumentsComeFirstNeverPausesForGood) {
  FakeSettings settings;
  settings.control_tokens = {std::string(100, 'c')};
  const FakeEngine engine(settings);
  const auto stream = std::make_shared<Stream>();
  AnswerForm form;
  form.tools = ToolForm::kHermes;
  AnswerSink sink(
      engine, stream,
      std::make_unique<AnswerParser>(form, AnswerOptions{{"clock"}, &random_tool_call_id}), true);
  SampledToken token;
  for (int other = 0; other < 20; ++other) token.top.push_back({FakeEngine::kEnd + 1, -2});
  const std::string answer = R"(<tool_call>{"arguments": {"zone": ")" + std::string(1000, 'z') +
                             R"("}, "name": "clock"}</tool_call>)";
  for (const char byte : answer) {
    ASSERT_TRUE(stream->has_room());
    token.token = static_cast<unsigned char>(byte);
    sink.on_token(std::string(1, byte), std::span(&token, 1));
  }
  sink.on_end(JobResult{});
  EXPECT_EQ(stream->ids, static_cast<int>(answer.size()));
  EXPECT_THAT(stream->calls, testing::Contains("clock"));
}

}  // namespace
}  // namespace berth::worker
