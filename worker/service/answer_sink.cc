#include "worker/service/answer_sink.h"

#include <utility>

namespace berth::worker {

AnswerSink::AnswerSink(const Engine& engine, std::shared_ptr<AnswerReceiver> receiver,
                       std::unique_ptr<AnswerParser> parser, bool with_logprobs)
    : engine_(engine),
      receiver_(std::move(receiver)),
      parser_(std::move(parser)),
      with_logprobs_(with_logprobs) {}

void AnswerSink::on_prefill(std::uint32_t done, std::uint32_t total) {
  receiver_->on_prefill(done, total);
}

void AnswerSink::on_token(std::string_view text, std::span<const SampledToken> tokens) {
  piece_.Clear();
  for (const auto& token : tokens) {
    piece_.add_ids(token.token);
    if (with_logprobs_) add_logprobs(token);
  }
  if (parser_) {
    delta_.clear();
    parser_->push(text, delta_);
    send_delta();
  } else {
    piece_.mutable_text()->assign(text);
    receiver_->on_piece(piece_);
  }
}

void AnswerSink::send_delta() {
  piece_.mutable_text()->swap(delta_.content);
  piece_.mutable_reasoning()->swap(delta_.reasoning);
  for (auto& from : delta_.tool_calls) {
    auto& call = *piece_.add_tool_calls();
    call.set_index(from.index);
    call.set_id(std::move(from.id));
    call.set_name(std::move(from.name));
    call.set_arguments(std::move(from.arguments));
  }
  receiver_->on_piece(piece_);
}

void AnswerSink::on_end(JobEnd end) {
  // What the parser held back belongs to an answer that is there, however it ended.
  if (parser_ && !std::holds_alternative<JobCancelled>(end)) {
    piece_.Clear();
    delta_.clear();
    parser_->finish(delta_);
    if (!delta_.empty()) send_delta();
  }
  receiver_->on_end(std::move(end));
}

void AnswerSink::add_logprobs(const SampledToken& token) {
  auto& entry = *piece_.add_logprobs();
  put({token.token, token.logprob}, *entry.mutable_chosen());
  for (const auto& other : token.top) put(other, *entry.add_top());
}

void AnswerSink::put(const TokenLogprob& from, v1::TokenLogprob& to) {
  to.set_id(from.token);
  to.set_logprob(from.logprob);
  engine_.append_piece(from.token, *to.mutable_text(), true);
}

}  // namespace berth::worker
