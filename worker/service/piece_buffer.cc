#include "worker/service/piece_buffer.h"

namespace berth::worker {
namespace {

// About what an entry of the log probabilities takes in memory besides its text.
constexpr std::size_t kLogprobBytes = 32;

std::size_t bytes_of(const v1::Token& piece) {
  std::size_t bytes = piece.text().size() + piece.reasoning().size();
  for (const auto& call : piece.tool_calls()) {
    bytes += call.id().size() + call.name().size() + call.arguments().size();
  }
  for (const auto& entry : piece.logprobs()) {
    bytes += kLogprobBytes + entry.chosen().text().size();
    for (const auto& other : entry.top()) bytes += kLogprobBytes + other.text().size();
  }
  return bytes;
}

}  // namespace

void PieceBuffer::add(v1::Token& piece) {
  bytes_ += bytes_of(piece);
  piece_.mutable_text()->append(piece.text());
  piece_.mutable_reasoning()->append(piece.reasoning());
  piece_.mutable_ids()->MergeFrom(piece.ids());
  for (auto& entry : *piece.mutable_logprobs()) piece_.add_logprobs()->Swap(&entry);
  for (auto& call : *piece.mutable_tool_calls()) {
    const int count = piece_.tool_calls_size();
    if (count > 0 && piece_.tool_calls(count - 1).index() == call.index()) {
      piece_.mutable_tool_calls(count - 1)->mutable_arguments()->append(call.arguments());
    } else {
      piece_.add_tool_calls()->Swap(&call);
    }
  }
}

void PieceBuffer::take(v1::Token& to) {
  to.Swap(&piece_);
  piece_.Clear();
  bytes_ = 0;
}

bool PieceBuffer::due(bool last) const {
  if (!piece_.text().empty() || !piece_.reasoning().empty() || piece_.tool_calls_size() > 0) {
    return true;
  }
  return piece_.ids_size() >= (last ? 1 : kMaxSilentTokens) || !has_room();
}

}  // namespace berth::worker
