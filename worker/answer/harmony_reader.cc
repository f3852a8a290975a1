#include "worker/answer/harmony_reader.h"

#include <algorithm>
#include <array>

namespace berth::worker {
namespace {

constexpr std::string_view kStart = "<|start|>";
constexpr std::string_view kChannel = "<|channel|>";
constexpr std::string_view kMessage = "<|message|>";
constexpr std::string_view kRecipient = " to=";
constexpr std::size_t kEndMarkers = 3;  // the first ones of ends_; the others begin a header

// What a header may start with: the prompt ends with the role, so a recipient may come first.
constexpr std::array<std::string_view, 3> kHeaderStarts{kStart, kChannel, kRecipient};

bool may_be_header(std::string_view text) {
  return std::any_of(kHeaderStarts.begin(), kHeaderStarts.end(), [text](std::string_view start) {
    return text.starts_with(start.substr(0, text.size()));
  });
}

// From behind `before` to the next whitespace or marker; empty where there is none.
std::string_view word_behind(std::string_view header, std::string_view before) {
  const auto at = header.find(before);
  if (at == std::string_view::npos) return {};
  const auto word = header.substr(at + before.size());
  return word.substr(0, word.find_first_of(" \t\r\n<"));
}

}  // namespace

HarmonyReader::HarmonyReader(bool starts_in_reasoning)
    : ends_({"<|end|>", "<|call|>", "<|return|>", std::string(kStart), std::string(kChannel)}) {
  if (starts_in_reasoning) {
    state_ = State::kBody;
    body_ = Body::kReasoning;
  }
}

void HarmonyReader::emit(std::string_view text, CallWriter& writer, AnswerDelta& out) {
  switch (body_) {
    case Body::kContent:
    case Body::kUnknownCall:
      out.content.append(text);
      return;
    case Body::kReasoning:
      out.reasoning.append(text);
      return;
    case Body::kCall:
      call_is_empty_ =
          call_is_empty_ && text.find_first_not_of(" \t\r\n") == std::string_view::npos;
      writer.add(text, out);
      return;
  }
}

void HarmonyReader::begin_body(CallWriter& writer, AnswerDelta& out) {
  constexpr std::string_view kFunctions = "functions.";
  const auto recipient = word_behind(held_, kRecipient);
  state_ = State::kBody;
  if (!recipient.empty()) {
    const auto name =
        recipient.starts_with(kFunctions) ? recipient.substr(kFunctions.size()) : recipient;
    if (writer.knows(name)) {
      body_ = Body::kCall;
      call_is_empty_ = true;
      writer.begin(std::string(name), out);
    } else {
      body_ = Body::kUnknownCall;
      out.content.append(held_);
    }
  } else {
    body_ = word_behind(held_, kChannel) == "analysis" ? Body::kReasoning : Body::kContent;
  }
  held_.clear();
}

void HarmonyReader::end_body(CallWriter& writer, AnswerDelta& out) {
  if (body_ == Body::kCall && call_is_empty_) writer.add("{}", out);
  call_is_empty_ = false;
  state_ = State::kHeader;
}

std::size_t HarmonyReader::push_header(std::string_view text, CallWriter& writer,
                                       AnswerDelta& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    held_.push_back(text[i]);
    if (!may_be_header(std::string_view(held_).substr(0, kChannel.size())) ||
        held_.size() > kMaxHeaderBytes) {
      state_ = State::kBody;
      body_ = Body::kContent;
      held_.pop_back();
      out.content.append(held_);
      held_.clear();
      return i;
    }
    if (text[i] == '>' && std::string_view(held_).ends_with(kMessage)) {
      begin_body(writer, out);
      return i + 1;
    }
  }
  return text.size();
}

std::size_t HarmonyReader::push_body(std::string_view text, CallWriter& writer, AnswerDelta& out) {
  const auto match = ends_.find(text);
  emit(text.substr(0, match.at), writer, out);
  if (!match.complete) return match.at;
  const auto& marker = ends_.marker(match.marker);
  if (body_ == Body::kUnknownCall && match.marker < kEndMarkers) out.content.append(marker);
  end_body(writer, out);
  if (match.marker >= kEndMarkers) held_ = marker;
  return match.at + marker.size();
}

void HarmonyReader::push(std::string_view text, CallWriter& writer, AnswerDelta& out) {
  std::string joined;
  if (!pending_.empty()) {
    joined = std::move(pending_);
    joined.append(text);
    pending_.clear();
    text = joined;
  }
  while (!text.empty()) {
    const auto before = state_;
    const auto taken =
        before == State::kHeader ? push_header(text, writer, out) : push_body(text, writer, out);
    text.remove_prefix(taken);
    if (before == State::kBody && state_ == State::kBody && !text.empty()) {
      pending_ = text;
      return;
    }
  }
}

void HarmonyReader::finish(CallWriter& writer, AnswerDelta& out) {
  if (state_ == State::kBody) {
    emit(pending_, writer, out);
    end_body(writer, out);
  } else if (!held_.starts_with(kStart) && !held_.starts_with(kChannel)) {
    out.content.append(held_);  // too short to tell, and not the framing of a cut message
  }
  pending_.clear();
  held_.clear();
}

}  // namespace berth::worker
