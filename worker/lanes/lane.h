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
// starts with the same tokens need not read them again.
//
// All lanes share one pool of cells (M4). A lane has a number of them reserved, which grows when
// the answer outgrows it; a lane whose cells are needed by an older one is parked: it gives them
// up, keeps its job, and reads its tokens again when it goes on. Context thread only; no I/O;
// nothing fails except through the job's end.
class Lane {
 public:
  Lane(SequenceId sequence, Engine& engine) : sequence_(sequence), engine_(&engine) {}

  [[nodiscard]] bool busy() const { return job_ != nullptr; }
  [[nodiscard]] const Job& job() const { return *job_; }
  // Whether it has more to read than the token that was generated last.
  [[nodiscard]] bool reading() const {
    return busy() && (!prompt_read_ || tokens_.size() - held_ > 1);
  }
  // Whether it has a part in the present batch.
  [[nodiscard]] bool computing() const { return batch_tokens_ > 0; }
  // Tokens of `prompt` that its sequence holds already.
  [[nodiscard]] std::uint32_t common_prefix(const std::vector<TokenId>& prompt) const;
  [[nodiscard]] std::size_t held_tokens() const { return held_; }
  // Cells that are its own while it is busy and not parked; at most a window.
  [[nodiscard]] std::size_t reserved() const { return reserved_; }
  [[nodiscard]] bool parked() const { return parked_; }
  // When its job began, among all jobs: the youngest has the highest.
  [[nodiscard]] std::uint64_t order() const { return order_; }

  // Begins a job with so many cells reserved; the lane must be idle.
  void begin(std::unique_ptr<Job> job, std::size_t cells, std::uint64_t order, SteadyTime now);
  // Reserves so many cells more where the next token needs one that is not reserved. Whether it
  // did.
  bool grow(std::size_t cells);
  void park();
  void unpark() { parked_ = false; }
  // Gives up what an idle lane's sequence holds.
  void forget();
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
  std::vector<TokenId> tokens_;  // the prompt and what was generated; at most one window
  std::size_t held_ = 0;         // so many of them the sequence holds, with the batch's
  std::size_t reserved_ = 0;
  std::uint64_t order_ = 0;
  bool parked_ = false;

  // Its part of the present batch.
  std::size_t batch_tokens_ = 0;
  std::size_t output_index_ = 0;

  // The generation.
  TextAssembler assembler_;
  bool prompt_read_ = false;
  JobResult result_;
  SteadyTime began_{};
  SteadyTime read_prompt_{};          // when the prompt was read
  std::string piece_;                 // scratch
  std::string text_;                  // not sent yet
  std::vector<SampledToken> unsent_;  // tokens whose text is not sent yet
};

}  // namespace berth::worker
