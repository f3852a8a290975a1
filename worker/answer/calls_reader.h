#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "worker/answer/call_object.h"
#include "worker/answer/call_syntax.h"

namespace berth::worker {

// Reads a run of tool calls of one syntax, from its opener (or the first byte of an answer that may
// be a call as a whole) to where it ends. Keeps what it read until a call is announced, so that all
// of it can become content if it is none; at most kMaxHeldBytes.
class CallsReader {
 public:
  // Arguments before a name may be long; an answer that long which is no call yet never is one.
  static constexpr std::size_t kMaxHeldBytes = std::size_t{1} << 20U;
  // Of a name before its arguments, with the texts around it.
  static constexpr std::size_t kMaxHeaderBytes = 1024;

  enum class Step : std::uint8_t {
    kMore,
    kEnded,    // the next byte is behind the calls
    kRejected  // what take_held() gives is content, and so is the next byte
  };
  struct Taken {
    std::size_t bytes = 0;
    Step step = Step::kMore;
  };

  // `syntax` outlives the reader.
  explicit CallsReader(const CallSyntax& syntax) : syntax_(&syntax) {}

  // Starts behind opener `opener` of the syntax; `held` is that text, with what was held before it.
  void start(std::size_t opener, std::string held);
  // Starts before one of the syntax's bare_starts; `held`: whitespace before it.
  void start_bare(std::string held);

  Taken push(std::string_view text, CallWriter& writer, AnswerDelta& out);
  // No more text: kEnded, or kRejected.
  [[nodiscard]] Step finish() const;
  [[nodiscard]] std::string take_held();
  // Since the start a call was announced whose closing text did not come yet.
  [[nodiscard]] bool awaits_close() const { return announced_any_ && !met_end_; }

 private:
  enum class State : std::uint8_t { kLead, kFence, kHeader, kObject, kArguments, kTrailer };

  void reset(State state, std::string held);
  [[nodiscard]] bool is_announced() const;
  [[nodiscard]] std::size_t room() const;
  Taken push_part(std::string_view text, CallWriter& writer, AnswerDelta& out);
  Taken push_lead(std::string_view text);
  Taken push_fence(char c);
  Taken push_header(char c, CallWriter& writer, AnswerDelta& out);
  Taken push_object(std::string_view text, CallWriter& writer, AnswerDelta& out);
  Taken push_arguments(std::string_view text, CallWriter& writer, AnswerDelta& out);
  Taken push_trailer(char c);
  Taken end_token(const CallToken& token);
  [[nodiscard]] const CallToken* token_like(std::string_view text) const;
  void begin_object();
  [[nodiscard]] bool is_token_open(const CallToken& token) const;

  const CallSyntax* syntax_;
  State state_ = State::kLead;
  std::string held_;             // would be content if no call followed
  std::string partial_;          // start of a token
  std::string fence_;            // the line that opens a fence
  std::size_t header_from_ = 0;  // in held_
  bool is_bare_ = false;
  bool in_list_ = false;
  bool in_fence_ = false;
  bool announced_any_ = false;
  bool met_end_ = false;
  CallObject object_;
  ArgumentsReader arguments_;
};

}  // namespace berth::worker
