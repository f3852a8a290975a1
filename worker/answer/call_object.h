#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "worker/answer/json_scan.h"

namespace berth::worker {

// One tool call that a model writes as a JSON object: a name ("name", "function", "tool" or
// "tool_name") and arguments ("arguments" or "parameters"), in either order, beside other keys, or
// both within "function" as OpenAI has them. The call is announced once its name is known and its
// arguments begin, or the object ends; from then on it stays one. Before that anything that makes
// it none is a fault: no name, an unknown tool, malformed text.
//
// Arguments that come before the name are kept until it comes: who calls bounds how much is pushed
// to an object that is not announced yet.
class CallObject {
 public:
  struct Rules {
    // The answer does not mark that it is a call: keys that no call has are a fault, so that other
    // JSON is recognised at once, and arguments must be there.
    bool is_bare = false;
  };

  CallObject() = default;
  explicit CallObject(Rules rules) : rules_(rules) {}

  // Returns how many bytes belong to the object; at a fault, how many precede it.
  std::size_t push(std::string_view text, CallWriter& writer, AnswerDelta& out);
  [[nodiscard]] ScanStatus status() const { return status_; }
  [[nodiscard]] bool announced() const { return announced_; }

 private:
  enum class State : std::uint8_t {
    kOpen,
    kKeyOrEnd,
    kKey,
    kColon,
    kValue,
    kName,
    kSkip,
    kEarly,  // arguments before the name
    kArguments,
    kCommaOrEnd
  };
  enum class Key : std::uint8_t { kName, kFunction, kArguments, kFrame, kOther };

  static Key key_of(std::string_view text);

  // Each returns whether the byte was taken; the status says when it is a fault.
  bool push_byte(char c, CallWriter& writer, AnswerDelta& out);
  bool push_structure(char c, CallWriter& writer, AnswerDelta& out);
  bool push_token(char c, CallWriter& writer, AnswerDelta& out);
  bool begin_value(char c, CallWriter& writer, AnswerDelta& out);
  bool fault();
  void end_name(CallWriter& writer, AnswerDelta& out);
  bool end_object(CallWriter& writer, AnswerDelta& out);
  void announce(CallWriter& writer, AnswerDelta& out);

  Rules rules_;
  ScanStatus status_ = ScanStatus::kReading;
  State state_ = State::kOpen;
  Key key_ = Key::kOther;
  bool is_nested_ = false;  // within "function": {…}
  bool announced_ = false;
  std::string token_;  // the key or the name that is read; bounded
  JsonStringDecoder token_decoder_;
  ValueScanner scanner_;
  ArgumentsReader arguments_;
  std::string name_;
  std::string early_;  // raw text of arguments that came before the name
};

}  // namespace berth::worker
