#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "berth/v1/inference.pb.h"
#include "worker/answer/answer_parser.h"
#include "worker/engine/engine.h"
#include "worker/lanes/job.h"

namespace berth::worker {

// Takes an answer piece by piece in the protocol's form, on the context thread. The functions must
// not block.
class AnswerReceiver {
 public:
  AnswerReceiver() = default;
  AnswerReceiver(const AnswerReceiver&) = delete;
  AnswerReceiver& operator=(const AnswerReceiver&) = delete;
  virtual ~AnswerReceiver() = default;

  virtual void on_prefill(std::uint32_t done, std::uint32_t total) = 0;
  // The next piece; may have tokens and nothing else. It may be emptied.
  virtual void on_piece(v1::Token& piece) = 0;
  // As JobSink's.
  virtual void on_end(JobEnd end) = 0;
  [[nodiscard]] virtual bool has_room() const = 0;
  [[nodiscard]] virtual bool cancelled() const = 0;
};

// Between a job and the stream of its call: makes pieces of the protocol out of text and tokens;
// parts reasoning, tool calls and content where there is a parser. So neither lanes nor streams
// know what models write. Context thread; lives as long as the job.
class AnswerSink final : public JobSink {
 public:
  // `engine` outlives it. `parser` null: everything is content.
  AnswerSink(const Engine& engine, std::shared_ptr<AnswerReceiver> receiver,
             std::unique_ptr<AnswerParser> parser, bool with_logprobs);

  void on_prefill(std::uint32_t done, std::uint32_t total) override;
  void on_token(std::string_view text, std::span<const SampledToken> tokens) override;
  void on_end(JobEnd end) override;
  [[nodiscard]] bool has_room() const override { return receiver_->has_room(); }
  [[nodiscard]] bool cancelled() const override { return receiver_->cancelled(); }

 private:
  void send_delta();
  void add_logprobs(const SampledToken& token);
  void put(const TokenLogprob& from, v1::TokenLogprob& to);

  const Engine& engine_;
  const std::shared_ptr<AnswerReceiver> receiver_;
  std::unique_ptr<AnswerParser> parser_;
  const bool with_logprobs_;
  v1::Token piece_;    // scratch
  AnswerDelta delta_;  // scratch
};

}  // namespace berth::worker
