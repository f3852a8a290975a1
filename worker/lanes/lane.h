#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/engine/engine.h"
#include "worker/lanes/job.h"
#include "worker/lanes/text_assembler.h"

namespace berth::worker {

// One sequence of the context and the job that runs on it. Between two batches it says what it
// wants computed (fill), and after a batch what became of it (absorb); so several lanes can share
// one batch. It remembers which tokens its sequence holds, also when it is idle: the next job that
// starts with the same tokens need not read them again. Context thread only; no I/O; nothing fails
// except through the job's end.
class Lane {
 public:
  Lane(SequenceId sequence, Engine& engine) : sequence_(sequence), engine_(&engine) {}

  [[nodiscard]] bool busy() const { return job_ != nullptr; }
  [[nodiscard]] const Job& job() const { return *job_; }
  [[nodiscard]] bool reading_prompt() const { return busy() && read_ < job_->prompt.size(); }
  // Whether it has a part in the present batch.
  [[nodiscard]] bool computing() const { return batch_tokens_ > 0; }
  // Tokens of `prompt` that its sequence holds already.
  [[nodiscard]] std::uint32_t common_prefix(const std::vector<TokenId>& prompt) const;
  [[nodiscard]] std::size_t held_tokens() const { return held_.size(); }

  // Begins a job; the lane must be idle.
  void begin(std::unique_ptr<Job> job, SteadyTime now);
  // Adds its next tokens to `batch`, at most `limit`: a chunk of the prompt, or one token of the
  // answer; nothing while its sink has no room.
  void fill(std::vector<BatchItem>& batch, std::size_t limit);
  // The batch was computed: takes the next token from the engine if there is one. `now` is after
  // the batch.
  void absorb(SteadyTime now);
  // The batch was not computed to its end: forgets its part of it. The job cannot go on.
  void undo();
  // Ends the job before its time.
  void end(JobEnd end);

 private:
  void take_token(SteadyTime now);
  void send_text();
  void finish(JobResult::Finish finish, SteadyTime now);

  SequenceId sequence_;
  Engine* engine_;
  std::unique_ptr<Job> job_;
  std::vector<TokenId> held_;  // what the sequence holds, at most one window
  std::size_t read_ = 0;       // tokens of the prompt that are held or in the batch

  // Its part of the present batch.
  std::size_t batch_tokens_ = 0;
  std::size_t output_index_ = 0;

  // The generation.
  std::unique_ptr<Sampler> sampler_;
  TextAssembler assembler_;
  TokenId next_ = 0;  // sampled, not computed yet
  JobResult result_;
  SteadyTime began_{};
  SteadyTime read_prompt_{};  // when the prompt was read
  std::string piece_;         // scratch
  std::string text_;          // not sent yet
  std::vector<TokenId> ids_;  // tokens whose text is not sent yet
};

}  // namespace berth::worker
