#include "worker/answer/answer_parser.h"

#include <algorithm>
#include <utility>

namespace berth::worker {
namespace {

bool is_mark_of_end(const CallToken& token) {
  return (token.role == CallToken::Role::kClose || token.role == CallToken::Role::kEnd) &&
         token.is_mark();
}

std::vector<std::string> tool_marks(const CallSyntax& syntax) {
  std::vector<std::string> marks;
  for (const auto& opener : syntax.openers) marks.emplace_back(opener.text);
  for (const auto& token : syntax.tokens) {
    if (is_mark_of_end(token)) marks.emplace_back(token.text);
  }
  return marks;
}

std::vector<std::string> only(const std::string& mark) {
  if (mark.empty()) return {};
  return {mark};
}

std::size_t count_leading(std::string_view text, std::string_view bytes) {
  return std::min(text.find_first_not_of(bytes), text.size());
}

}  // namespace

AnswerParser::AnswerParser(AnswerForm form, AnswerOptions options)
    : form_(std::move(form)),
      writer_(std::move(options.tools), std::move(options.make_id)),
      syntax_(&call_syntax(form_.tools)),
      calls_(*syntax_),
      harmony_(form_.starts_in_reasoning),
      reasoning_open_(only(form_.reasoning_open)),
      reasoning_close_(only(form_.reasoning_close)),
      tool_marks_(tool_marks(*syntax_)) {
  for (const auto& token : syntax_->tokens) {
    if (is_mark_of_end(token)) is_end_.push_back(token.role == CallToken::Role::kEnd);
  }
  if (!form_.reasoning_open.empty() && !form_.reasoning_close.empty()) phase_ = Phase::kStart;
}

std::size_t AnswerParser::take_gap(std::string_view text) {
  const auto size = std::min(count_leading(text, " \t\r\n"), kMaxGapBytes - gap_.size());
  gap_.append(text.substr(0, size));
  return size;
}

void AnswerParser::emit_content(std::string_view text, AnswerDelta& out) {
  if (text.empty()) return;
  out.content.append(gap_);
  gap_.clear();
  out.content.append(text);
}

void AnswerParser::emit_reasoning(std::string_view text, AnswerDelta& out) {
  const auto last = text.find_last_not_of('\n');
  if (last == std::string_view::npos) {
    newlines_ += text.size();
    return;
  }
  out.reasoning.append(newlines_, '\n');
  out.reasoning.append(text.substr(0, last + 1));
  newlines_ = text.size() - last - 1;
}

// Before anything but whitespace came: only here does the opening mark count.
std::size_t AnswerParser::read_start(std::string_view text) {
  const auto space = take_gap(text);
  const auto rest = text.substr(space);
  if (rest.empty()) return space;
  const auto match = reasoning_open_.find(rest);
  if (match.at == 0 && gap_.size() < kMaxGapBytes) {
    if (!match.complete) return space;
    gap_.clear();
    phase_ = Phase::kReasoning;
    skip_newlines_ = true;
    return space + form_.reasoning_open.size();
  }
  phase_ = form_.starts_in_reasoning ? Phase::kReasoning : Phase::kAnswerStart;
  skip_newlines_ = form_.starts_in_reasoning;
  return space;
}

std::size_t AnswerParser::read_reasoning(std::string_view text, AnswerDelta& out) {
  if (!gap_.empty()) {  // the prompt opened the reasoning, so this is its first text
    const auto lead = std::exchange(gap_, {});
    emit_reasoning(std::string_view(lead).substr(count_leading(lead, "\n")), out);
    skip_newlines_ = false;
  }
  if (skip_newlines_) {
    const auto size = count_leading(text, "\n");
    if (size > 0) return size;
    skip_newlines_ = false;
  }
  const auto match = reasoning_close_.find(text);
  emit_reasoning(text.substr(0, match.at), out);
  if (!match.complete) return match.at;
  phase_ = Phase::kAnswerStart;
  newlines_ = 0;
  skip_newlines_ = true;
  return match.at + form_.reasoning_close.size();
}

std::size_t AnswerParser::read_answer_start(std::string_view text) {
  if (skip_newlines_) {
    const auto size = count_leading(text, "\r\n");
    if (size > 0) return size;
    skip_newlines_ = false;
  }
  phase_ = Phase::kContent;
  if (syntax_->openers.empty()) return 0;
  const auto space = take_gap(text);
  if (space == text.size() && gap_.size() < kMaxGapBytes) {
    phase_ = Phase::kAnswerStart;
  } else if (space < text.size() && gap_.size() < kMaxGapBytes &&
             syntax_->bare_starts.find(text[space]) != std::string_view::npos) {
    phase_ = Phase::kCalls;
    calls_.start_bare(std::exchange(gap_, {}));
  }
  return space;
}

std::size_t AnswerParser::read_content(std::string_view text, AnswerDelta& out) {
  if (skip_space_) {
    const auto space = count_leading(text, " \t\r\n");
    if (space > 0) return space;
    skip_space_ = false;
  }
  const auto openers = syntax_->openers.size();
  const auto match = tool_marks_.find(text, awaits_close_ ? openers + is_end_.size() : openers);
  emit_content(text.substr(0, match.at), out);
  if (!match.complete) return match.at;
  const auto& mark = tool_marks_.marker(match.marker);
  if (match.marker >= openers) {
    awaits_close_ = !is_end_[match.marker - openers];
    skip_space_ = true;
  } else {
    awaits_close_ = false;
    phase_ = Phase::kCalls;
    calls_.start(match.marker, std::exchange(gap_, {}) + mark);
  }
  return match.at + mark.size();
}

void AnswerParser::end_calls(CallsReader::Step step, AnswerDelta& out) {
  phase_ = Phase::kContent;
  awaits_close_ = calls_.awaits_close();
  skip_space_ = step == CallsReader::Step::kEnded;
  if (step == CallsReader::Step::kEnded) return;
  // Not searched for markers again: text that fails as a call could hold many more that do.
  emit_content(calls_.take_held(), out);
}

std::size_t AnswerParser::read_calls(std::string_view text, AnswerDelta& out) {
  const auto taken = calls_.push(text, writer_, out);
  if (taken.step != CallsReader::Step::kMore) end_calls(taken.step, out);
  return taken.bytes;
}

std::size_t AnswerParser::step(std::string_view text, AnswerDelta& out) {
  switch (phase_) {
    case Phase::kStart:
      return read_start(text);
    case Phase::kReasoning:
      return read_reasoning(text, out);
    case Phase::kAnswerStart:
      return read_answer_start(text);
    case Phase::kContent:
      return read_content(text, out);
    case Phase::kCalls:
      return read_calls(text, out);
  }
  return text.size();
}

void AnswerParser::push(std::string_view text, AnswerDelta& out) {
  if (form_.tools == ToolForm::kHarmony) {
    harmony_.push(text, writer_, out);
    return;
  }
  std::string joined;
  if (!pending_.empty()) {
    joined = std::exchange(pending_, {});
    joined.append(text);
    text = joined;
  }
  while (!text.empty()) {
    const auto phase = phase_;
    const auto taken = step(text, out);
    text.remove_prefix(taken);
    if (taken == 0 && phase == phase_) {
      pending_ = text;
      return;
    }
  }
}

void AnswerParser::finish(AnswerDelta& out) {
  if (form_.tools == ToolForm::kHarmony) {
    harmony_.finish(writer_, out);
    return;
  }
  const bool is_reasoning =
      phase_ == Phase::kReasoning || (phase_ == Phase::kStart && form_.starts_in_reasoning);
  if (phase_ == Phase::kCalls) end_calls(calls_.finish(), out);
  const auto rest = std::exchange(gap_, {}) + std::exchange(pending_, {});
  if (is_reasoning) {
    emit_reasoning(rest, out);
    out.reasoning.append(std::exchange(newlines_, 0), '\n');
  } else {
    emit_content(rest, out);
  }
}

}  // namespace berth::worker
