#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tests/unit/worker/answer/answer_samples.h"
#include "tests/unit/worker/answer/parsed_answer.h"
#include "worker/answer/answer_parser.h"
#include "worker/answer/call_syntax.h"

namespace berth::worker {
namespace {

constexpr std::array<ToolForm, 8> kForms{
    ToolForm::kNone,         ToolForm::kHermes, ToolForm::kLlama3,  ToolForm::kMistral,
    ToolForm::kMistralNamed, ToolForm::kJson,   ToolForm::kHarmony, ToolForm::kDeepSeek};

void check_sample(ToolForm tools) {
  const auto sample = sample_of(tools);
  RC_LOG() << sample.text << "\n";
  RC_ASSERT(parse_pieces(sample.form, {sample.text}) == sample.expected);
  RC_ASSERT(parse_pieces(sample.form, cut(sample.text, 1)) == sample.expected);
  RC_ASSERT(parse_pieces(sample.form, cut_at_will(sample.text)) == sample.expected);
}

RC_GTEST_PROP(AnswerProperty, PlainReadsWhatWasWritten, ()) {
  check_sample(ToolForm::kNone);
}
RC_GTEST_PROP(AnswerProperty, HermesReadsWhatWasWritten, ()) {
  check_sample(ToolForm::kHermes);
}
RC_GTEST_PROP(AnswerProperty, Llama3ReadsWhatWasWritten, ()) {
  check_sample(ToolForm::kLlama3);
}
RC_GTEST_PROP(AnswerProperty, MistralReadsWhatWasWritten, ()) {
  check_sample(coin() ? ToolForm::kMistral : ToolForm::kMistralNamed);
}
RC_GTEST_PROP(AnswerProperty, JsonReadsWhatWasWritten, ()) {
  check_sample(ToolForm::kJson);
}
RC_GTEST_PROP(AnswerProperty, HarmonyReadsWhatWasWritten, ()) {
  check_sample(ToolForm::kHarmony);
}
RC_GTEST_PROP(AnswerProperty, DeepSeekReadsWhatWasWritten, ()) {
  check_sample(ToolForm::kDeepSeek);
}

RC_GTEST_PROP(AnswerProperty, NoCutChangesWhatComesOut, ()) {
  const auto text = noise();
  RC_LOG() << text << "\n";
  for (const auto tools : kForms) {
    for (const bool thinks : {false, true}) {
      AnswerForm form{tools, thinks ? "<think>" : "", thinks ? "</think>" : "", false};
      form.starts_in_reasoning = thinks && coin();
      const auto whole = parse_pieces(form, {text});
      RC_ASSERT(parse_pieces(form, cut(text, 1)) == whole);
      RC_ASSERT(parse_pieces(form, cut_at_will(text)) == whole);
      // What is no call is content, and nothing is lost.
      const bool is_plain = whole.calls.empty() && !thinks && tools != ToolForm::kHarmony;
      RC_ASSERT(!is_plain || whole.content == text);
    }
  }
}

std::size_t longest_marker(const AnswerForm& form) {
  const auto& syntax = call_syntax(form.tools);
  std::size_t longest = 0;
  for (const auto& opener : syntax.openers) longest = std::max(longest, opener.text.size());
  for (const auto& token : syntax.tokens) longest = std::max(longest, token.text.size());
  return longest;
}

RC_GTEST_PROP(AnswerProperty, NothingIsHeldBackLongerThanAMarker, ()) {
  AnswerForm form;
  form.tools = coin() ? ToolForm::kHermes : ToolForm::kDeepSeek;
  // White space at the very start is held back for itself.
  const auto text = "x" + text_of(30);
  RC_LOG() << text << "\n";
  auto parser = make_parser(form);
  AnswerDelta out;
  std::size_t pushed = 0;
  for (const auto& piece : cut_at_will(text)) {
    parser.push(piece, out);
    pushed += piece.size();
    RC_ASSERT(pushed - out.content.size() <= longest_marker(form));
    RC_ASSERT(text.starts_with(out.content));
  }
  // All but a text that may still become a marker; here the text ends with none.
  RC_ASSERT(out.content == text);
}

}  // namespace
}  // namespace berth::worker
