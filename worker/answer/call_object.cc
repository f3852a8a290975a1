#include "worker/answer/call_object.h"

#include <algorithm>
#include <array>
#include <utility>

namespace berth::worker {
namespace {

// OpenAI allows 64 bytes for the name of a function. A longer key or name is no call's.
constexpr std::size_t kMaxTokenBytes = 256;

}  // namespace

CallObject::Key CallObject::key_of(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, Key>, 11> kKeys{{
      {"name", Key::kName},
      {"tool", Key::kName},
      {"tool_name", Key::kName},
      {"function", Key::kFunction},
      {"arguments", Key::kArguments},
      {"parameters", Key::kArguments},
      {"id", Key::kFrame},
      {"type", Key::kFrame},
      {"index", Key::kFrame},
      {"call_id", Key::kFrame},
      {"tool_call_id", Key::kFrame},
  }};
  const auto* const found = std::find_if(kKeys.begin(), kKeys.end(),
                                         [text](const auto& key) { return key.first == text; });
  return found == kKeys.end() ? Key::kOther : found->second;
}

bool CallObject::fault() {
  status_ = ScanStatus::kFault;
  return false;
}

void CallObject::announce(CallWriter& writer, AnswerDelta& out) {
  writer.begin(name_, out);
  announced_ = true;
}

void CallObject::end_name(CallWriter& writer, AnswerDelta& out) {
  name_ = token_;
  state_ = State::kCommaOrEnd;
  if (early_.empty()) return;
  announce(writer, out);
  arguments_.push(early_, writer, out);
  early_ = {};
}

bool CallObject::end_object(CallWriter& writer, AnswerDelta& out) {
  if (is_nested_) {
    is_nested_ = false;
    state_ = State::kCommaOrEnd;
    return true;
  }
  if (!announced_) {
    if (name_.empty() || rules_.is_bare) return fault();
    announce(writer, out);
    writer.add("{}", out);
  }
  status_ = ScanStatus::kDone;
  return true;
}

bool CallObject::begin_value(char c, CallWriter& writer, AnswerDelta& out) {
  const bool is_name = key_ == Key::kName || key_ == Key::kFunction;
  if (key_ == Key::kFunction && c == '{' && !is_nested_) {
    is_nested_ = true;
    state_ = State::kKeyOrEnd;
    return true;
  }
  if (is_name && name_.empty()) {
    if (c != '"') return fault();
    token_.clear();
    token_decoder_ = JsonStringDecoder();
    state_ = State::kName;
    return true;
  }
  scanner_ = ValueScanner();
  state_ = State::kSkip;
  if (key_ == Key::kArguments && !announced_ && early_.empty()) {
    if (!ArgumentsReader::may_start(c)) return fault();
    state_ = name_.empty() ? State::kEarly : State::kArguments;
    if (state_ == State::kArguments) announce(writer, out);
  }
  return false;
}

bool CallObject::push_token(char c, CallWriter& writer, AnswerDelta& out) {
  const auto status = token_decoder_.push(c, token_);
  if (status == ScanStatus::kFault || token_.size() > kMaxTokenBytes) return fault();
  if (status == ScanStatus::kReading) return true;
  if (state_ == State::kKey) {
    key_ = key_of(token_);
    if (key_ == Key::kOther && rules_.is_bare && !announced_) return fault();
    state_ = State::kColon;
    return true;
  }
  if (!writer.knows(token_)) return fault();
  end_name(writer, out);
  return true;
}

bool CallObject::push_structure(char c, CallWriter& writer, AnswerDelta& out) {
  if (is_json_space(c)) return true;
  switch (state_) {
    case State::kOpen:
      if (c != '{') return fault();
      state_ = State::kKeyOrEnd;
      return true;
    case State::kKeyOrEnd:
      if (c == '}') return end_object(writer, out);
      if (c != '"') return fault();
      token_.clear();
      token_decoder_ = JsonStringDecoder();
      state_ = State::kKey;
      return true;
    case State::kColon:
      if (c != ':') return fault();
      state_ = State::kValue;
      return true;
    case State::kCommaOrEnd:
      if (c == '}') return end_object(writer, out);
      if (c != ',') return fault();
      state_ = State::kKeyOrEnd;
      return true;
    case State::kValue:
      return begin_value(c, writer, out);
    case State::kKey:
    case State::kName:
    case State::kSkip:
    case State::kEarly:
    case State::kArguments:
      break;
  }
  return fault();
}

bool CallObject::push_byte(char c, CallWriter& writer, AnswerDelta& out) {
  if (state_ == State::kKey || state_ == State::kName) return push_token(c, writer, out);
  return push_structure(c, writer, out);
}

std::size_t CallObject::push(std::string_view text, CallWriter& writer, AnswerDelta& out) {
  std::size_t i = 0;
  while (i < text.size() && status_ == ScanStatus::kReading) {
    const auto rest = text.substr(i);
    auto value = ScanStatus::kReading;
    if (state_ == State::kArguments) {
      i += arguments_.push(rest, writer, out);
      value = arguments_.status();
    } else if (state_ == State::kSkip || state_ == State::kEarly) {
      const auto taken = scanner_.push(rest);
      if (state_ == State::kEarly) early_.append(rest.substr(0, taken));
      i += taken;
      value = scanner_.status();
    } else if (push_byte(text[i], writer, out)) {
      ++i;
    }
    if (value == ScanStatus::kDone) state_ = State::kCommaOrEnd;
    if (value == ScanStatus::kFault) fault();
  }
  return i;
}

}  // namespace berth::worker
