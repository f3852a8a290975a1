#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "worker/answer/answer_delta.h"
#include "worker/answer/answer_form.h"
#include "worker/answer/call_writer.h"
#include "worker/answer/calls_reader.h"
#include "worker/answer/harmony_reader.h"
#include "worker/answer/marker_finder.h"

namespace berth::worker {

struct AnswerOptions {
  std::vector<std::string> tools;        // names; a call of any other name is content
  std::function<std::string()> make_id;  // for each call; must not throw. Null: call_0, call_1, …
};

// Parts a model's answer into content, reasoning and tool calls while it is generated. One per
// answer; used by one thread. Each byte is looked at a bounded number of times, however the text is
// cut, and the cutting does not change what comes out in sum. Held back is only what may still
// become a marker or a call: at most CallsReader::kMaxHeldBytes. Nothing fails: what is no call is
// content, byte for byte. docs/tool-calls.md says what is recognised and what the client sees.
class AnswerParser {
 public:
  AnswerParser(AnswerForm form, AnswerOptions options);

  // Appends to `out` what is certain now. `text` is UTF-8 without cut characters.
  void push(std::string_view text, AnswerDelta& out);
  // The answer is over: appends what was held back. Nothing may be pushed after it.
  void finish(AnswerDelta& out);

 private:
  // Whitespace at the start is kept until it is clear what follows; more than this is content.
  static constexpr std::size_t kMaxGapBytes = 256;

  enum class Phase : std::uint8_t { kStart, kReasoning, kAnswerStart, kContent, kCalls };

  // Each returns how many bytes it took. Took it none and stays in its phase, then the text may
  // become a marker and is kept.
  std::size_t step(std::string_view text, AnswerDelta& out);
  std::size_t read_start(std::string_view text);
  std::size_t read_reasoning(std::string_view text, AnswerDelta& out);
  std::size_t read_answer_start(std::string_view text);
  std::size_t read_content(std::string_view text, AnswerDelta& out);
  std::size_t read_calls(std::string_view text, AnswerDelta& out);
  // Takes whitespace into gap_; returns how much.
  std::size_t take_gap(std::string_view text);
  void emit_content(std::string_view text, AnswerDelta& out);
  void emit_reasoning(std::string_view text, AnswerDelta& out);
  void end_calls(CallsReader::Step step, AnswerDelta& out);

  AnswerForm form_;
  CallWriter writer_;
  const CallSyntax* syntax_;
  CallsReader calls_;
  HarmonyReader harmony_;
  MarkerFinder reasoning_open_;
  MarkerFinder reasoning_close_;
  MarkerFinder tool_marks_;   // the syntax's openers, then texts that end a call
  std::vector<bool> is_end_;  // of each text that ends a call: it ends all

  Phase phase_ = Phase::kAnswerStart;
  std::string pending_;         // start of a marker
  std::string gap_;             // whitespace before anything else
  std::size_t newlines_ = 0;    // at the end of the reasoning so far; dropped if it ends there
  bool skip_newlines_ = false;  // at the start of reasoning, or of the answer behind it
  bool skip_space_ = false;     // behind a call
  bool awaits_close_ = false;   // what ended a call was not met: it is framing if it still comes
};

}  // namespace berth::worker
