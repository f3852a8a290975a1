#include "worker/service/answer_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/fake_engine/fake_engine.h"
#include "worker/service/tool_call_id.h"

namespace berth::worker {
namespace {

using testing::StartsWith;

class Recorder final : public AnswerReceiver {
 public:
  void on_prefill(std::uint32_t done, std::uint32_t total) override { prefill = {done, total}; }
  void on_piece(v1::Token& piece) override {
    text += piece.text();
    reasoning += piece.reasoning();
    for (const auto& call : piece.tool_calls()) {
      if (call.index() >= calls.size()) calls.resize(call.index() + 1);
      auto& to = calls[call.index()];
      to.set_id(to.id() + call.id());
      to.set_name(to.name() + call.name());
      to.set_arguments(to.arguments() + call.arguments());
    }
    ids.insert(ids.end(), piece.ids().begin(), piece.ids().end());
    logprobs.insert(logprobs.end(), piece.logprobs().begin(), piece.logprobs().end());
  }
  void on_end(JobEnd how) override { end = std::move(how); }
  [[nodiscard]] bool has_room() const override { return room; }
  [[nodiscard]] bool cancelled() const override { return gone; }

  std::pair<std::uint32_t, std::uint32_t> prefill;
  std::string text;
  std::string reasoning;
  std::vector<v1::ToolCall> calls;
  std::vector<TokenId> ids;
  std::vector<v1::TokenLogprobs> logprobs;
  std::optional<JobEnd> end;
  bool room = true;
  bool gone = false;
};

class AnswerSinkTest : public testing::Test {
 protected:
  // One token per byte.
  static void say(AnswerSink& sink, const std::string& text) {
    for (const char byte : text) {
      SampledToken token;
      token.token = static_cast<unsigned char>(byte);
      token.logprob = -1;
      token.top = {{token.token, -1}, {'z', -2}};
      sink.on_token(std::string(1, byte), std::span(&token, 1));
    }
  }
  std::unique_ptr<AnswerSink> sink(std::optional<AnswerForm> form, bool with_logprobs = false) {
    std::unique_ptr<AnswerParser> parser;
    if (form) {
      parser = std::make_unique<AnswerParser>(
          *form, AnswerOptions{{"clock", "weather"}, &random_tool_call_id});
    }
    return std::make_unique<AnswerSink>(engine_, recorder_, std::move(parser), with_logprobs);
  }

  FakeEngine engine_{1};
  std::shared_ptr<Recorder> recorder_ = std::make_shared<Recorder>();
};

TEST_F(AnswerSinkTest, WithoutAParserEverythingIsText) {
  const auto made = sink(std::nullopt);
  say(*made, "<think>a</think>b");
  made->on_end(JobResult{});
  EXPECT_EQ(recorder_->text, "<think>a</think>b");
  EXPECT_EQ(recorder_->ids.size(), 17U);
  EXPECT_TRUE(recorder_->logprobs.empty());
}

TEST_F(AnswerSinkTest, ReasoningIsNoText) {
  AnswerForm form;
  form.reasoning_open = "<think>";
  form.reasoning_close = "</think>";
  form.starts_in_reasoning = true;
  const auto made = sink(form);
  say(*made, "first this\n</think>\n\nThen that.");
  made->on_end(JobResult{});
  EXPECT_EQ(recorder_->reasoning, "first this");
  EXPECT_EQ(recorder_->text, "Then that.");
  EXPECT_EQ(recorder_->ids.size(), 31U);
}

TEST_F(AnswerSinkTest, CallsOfToolsHaveRandomIds) {
  AnswerForm form;
  form.tools = ToolForm::kHermes;
  const auto made = sink(form);
  say(*made,
      "Let me look.\n<tool_call>\n{\"name\": \"clock\", \"arguments\": {\"zone\": \"UTC\"}}\n"
      "</tool_call>\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {}}\n</tool_call>");
  made->on_end(JobResult{});
  ASSERT_EQ(recorder_->calls.size(), 2U);
  EXPECT_EQ(recorder_->calls[0].name(), "clock");
  EXPECT_EQ(recorder_->calls[0].arguments(), "{\"zone\": \"UTC\"}");
  EXPECT_EQ(recorder_->calls[1].name(), "weather");
  EXPECT_THAT(recorder_->calls[0].id(), StartsWith("call_"));
  EXPECT_NE(recorder_->calls[0].id(), recorder_->calls[1].id());
  EXPECT_THAT(recorder_->text, StartsWith("Let me look."));
}

TEST_F(AnswerSinkTest, WhatWasHeldBackComesAtTheEnd) {
  AnswerForm form;
  form.tools = ToolForm::kHermes;
  for (const bool failed : {false, true}) {
    recorder_ = std::make_shared<Recorder>();
    const auto made = sink(form);
    say(*made, "a <tool_c");
    EXPECT_EQ(recorder_->text, "a ");
    made->on_end(failed ? JobEnd(Error(Reason::kDeadline, "late")) : JobEnd(JobResult{}));
    EXPECT_EQ(recorder_->text, "a <tool_c");
    ASSERT_TRUE(recorder_->end.has_value());
    EXPECT_EQ(std::holds_alternative<Error>(*recorder_->end), failed);
  }
}

TEST_F(AnswerSinkTest, LogprobsComeWithTheBytesOfTheirTokens) {
  const auto made = sink(std::nullopt, true);
  SampledToken token;
  token.token = 0xc3;  // half a character
  token.logprob = -1;
  token.top = {{0xc3, -1}, {'z', -2}};
  made->on_token("\xEF\xBF\xBD", std::span(&token, 1));
  ASSERT_EQ(recorder_->logprobs.size(), 1U);
  const auto& entry = recorder_->logprobs[0];
  EXPECT_EQ(entry.chosen().id(), 0xc3);
  EXPECT_EQ(entry.chosen().text(), "\xc3");
  EXPECT_EQ(entry.chosen().logprob(), -1);
  ASSERT_EQ(entry.top_size(), 2);
  EXPECT_EQ(entry.top(1).text(), "z");
  EXPECT_EQ(entry.top(1).logprob(), -2);
}

TEST_F(AnswerSinkTest, RoomAndCancellingAreTheReceivers) {
  const auto made = sink(std::nullopt);
  made->on_prefill(3, 9);
  EXPECT_EQ(recorder_->prefill, std::make_pair(3U, 9U));
  EXPECT_TRUE(made->has_room());
  EXPECT_FALSE(made->cancelled());
  recorder_->room = false;
  recorder_->gone = true;
  EXPECT_FALSE(made->has_room());
  EXPECT_TRUE(made->cancelled());
}

}  // namespace
}  // namespace berth::worker
