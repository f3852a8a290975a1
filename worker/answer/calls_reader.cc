#include "worker/answer/calls_reader.h"

#include <algorithm>
#include <utility>

namespace berth::worker {
namespace {

constexpr std::string_view kFence = "```";
constexpr std::size_t kMaxFenceBytes = 32;  // with the name of its language

}  // namespace

using Step = CallsReader::Step;
using Taken = CallsReader::Taken;

void CallsReader::reset(State state, std::string held) {
  state_ = state;
  held_ = std::move(held);
  partial_.clear();
  fence_.clear();
  is_bare_ = false;
  in_list_ = false;
  in_fence_ = false;
  announced_any_ = false;
  met_end_ = false;
}

void CallsReader::start(std::size_t opener, std::string held) {
  reset(syntax_->openers[opener].is_wrapper ? State::kTrailer : State::kLead, std::move(held));
}

void CallsReader::start_bare(std::string held) {
  reset(State::kLead, std::move(held));
  is_bare_ = true;
}

std::string CallsReader::take_held() {
  held_.append(partial_);
  partial_.clear();
  return std::exchange(held_, {});
}

bool CallsReader::is_announced() const {
  return state_ == State::kArguments || (state_ == State::kObject && object_.announced());
}

std::size_t CallsReader::room() const {
  if (is_announced()) return std::string_view::npos;
  return kMaxHeldBytes - std::min(kMaxHeldBytes, held_.size());
}

void CallsReader::begin_object() {
  object_ = CallObject({.is_bare = is_bare_});
  state_ = State::kObject;
}

// What stands between the opener and the first call.
Taken CallsReader::push_lead(std::string_view text) {
  const char c = text.front();
  if (is_json_space(c)) {
    held_.push_back(c);
    return {1, Step::kMore};
  }
  if (syntax_->is_json && c == '{') {
    begin_object();
    return {};
  }
  if (syntax_->is_json && c == '[' && !in_list_) {
    in_list_ = true;
    held_.push_back(c);
    return {1, Step::kMore};
  }
  if (is_bare_ && c == '`' && !in_fence_ && !in_list_ &&
      syntax_->bare_starts.find(c) != std::string_view::npos) {
    state_ = State::kFence;
    return {};
  }
  if (syntax_->name_in_header != nullptr && !in_list_) {
    header_from_ = held_.size();
    state_ = State::kHeader;
    return {};
  }
  return {0, Step::kRejected};
}

// ``` or ```json and the end of the line.
Taken CallsReader::push_fence(char c) {
  const auto place = fence_.size();
  const bool fits =
      place < kFence.size() ? c == kFence[place] : c != '`' && c != '{' && place < kMaxFenceBytes;
  if (!fits) return {0, Step::kRejected};
  fence_.push_back(c);
  held_.push_back(c);
  if (c == '\n') {
    in_fence_ = true;
    state_ = State::kLead;
  }
  return {1, Step::kMore};
}

Taken CallsReader::push_header(char c, CallWriter& writer, AnswerDelta& out) {
  const auto header = std::string_view(held_).substr(header_from_);
  if (c != '{') {
    const bool is_hopeless = is_json_space(c) && !syntax_->header_has_spaces;
    if (is_hopeless || header.size() >= kMaxHeaderBytes) return {0, Step::kRejected};
    held_.push_back(c);
    return {1, Step::kMore};
  }
  const auto name = syntax_->name_in_header(header);
  if (!name || !writer.knows(*name)) return {0, Step::kRejected};
  writer.begin(*name, out);
  announced_any_ = true;
  held_.clear();
  arguments_ = ArgumentsReader();
  state_ = State::kArguments;
  return {};
}

Taken CallsReader::push_arguments(std::string_view text, CallWriter& writer, AnswerDelta& out) {
  const auto taken = arguments_.push(text, writer, out);
  if (arguments_.status() != ScanStatus::kReading) state_ = State::kTrailer;
  return {taken, Step::kMore};
}

Taken CallsReader::push_object(std::string_view text, CallWriter& writer, AnswerDelta& out) {
  const auto taken = object_.push(text, writer, out);
  if (object_.announced()) {
    announced_any_ = true;
    held_.clear();
  } else {
    held_.append(text.substr(0, taken));
    if (object_.status() == ScanStatus::kFault) return {taken, Step::kRejected};
  }
  // A fault within an announced call ends it there.
  if (object_.status() != ScanStatus::kReading) state_ = State::kTrailer;
  return {taken, Step::kMore};
}

bool CallsReader::is_token_open(const CallToken& token) const {
  if (token.text == "]") return in_list_;
  if (token.text == kFence && syntax_->is_json) return in_fence_;
  return true;
}

const CallToken* CallsReader::token_like(std::string_view text) const {
  const auto found = std::find_if(
      syntax_->tokens.begin(), syntax_->tokens.end(),
      [&](const CallToken& token) { return token.text.starts_with(text) && is_token_open(token); });
  return found == syntax_->tokens.end() ? nullptr : &*found;
}

Taken CallsReader::end_token(const CallToken& token) {
  switch (token.role) {
    case CallToken::Role::kSeparator:
      held_.append(partial_);
      break;
    case CallToken::Role::kClose:
      if (token.text == "]") in_list_ = false;
      if (announced_any_) {
        held_.clear();
      } else {
        held_.append(partial_);
      }
      break;
    case CallToken::Role::kEnd:
      if (!announced_any_) return {1, Step::kRejected};
      held_.clear();
      partial_.clear();
      met_end_ = true;
      return {1, Step::kEnded};
    case CallToken::Role::kNext:
      held_.append(partial_);
      in_list_ = false;
      state_ = State::kLead;
      break;
  }
  partial_.clear();
  return {1, Step::kMore};
}

Taken CallsReader::push_trailer(char c) {
  if (partial_.empty()) {
    if (is_json_space(c)) {
      // Behind a call it is of no interest, unless it parts texts that become content.
      if (!held_.empty()) held_.push_back(c);
      return {1, Step::kMore};
    }
    if (syntax_->is_json && c == '{') {
      begin_object();
      return {};
    }
  }
  partial_.push_back(c);
  const auto* const token = token_like(partial_);
  if (token == nullptr) {
    partial_.pop_back();
    const bool nothing_held = held_.empty() && partial_.empty();
    return {0, nothing_held ? Step::kEnded : Step::kRejected};
  }
  if (token->text.size() == partial_.size()) return end_token(*token);
  return {1, Step::kMore};
}

Taken CallsReader::push_part(std::string_view text, CallWriter& writer, AnswerDelta& out) {
  switch (state_) {
    case State::kLead:
      return push_lead(text);
    case State::kFence:
      return push_fence(text.front());
    case State::kHeader:
      return push_header(text.front(), writer, out);
    case State::kObject:
      return push_object(text, writer, out);
    case State::kArguments:
      return push_arguments(text, writer, out);
    case State::kTrailer:
      return push_trailer(text.front());
  }
  return {0, Step::kRejected};
}

Taken CallsReader::push(std::string_view text, CallWriter& writer, AnswerDelta& out) {
  std::size_t taken = 0;
  while (taken < text.size()) {
    const auto size = room();
    if (size == 0) return {taken, Step::kRejected};
    const auto part = push_part(text.substr(taken, size), writer, out);
    taken += part.bytes;
    if (part.step != Step::kMore) return {taken, part.step};
  }
  return {taken, Step::kMore};
}

Step CallsReader::finish() const {
  if (state_ == State::kTrailer) {
    // A separator without another call, or a mark that was cut off.
    const bool is_text_left = !held_.empty() || !partial_.empty();
    return announced_any_ && !is_text_left ? Step::kEnded : Step::kRejected;
  }
  return is_announced() ? Step::kEnded : Step::kRejected;
}

}  // namespace berth::worker
