#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "worker/engine/engine.h"
#include "worker/lanes/draft_pace.h"
#include "worker/lanes/job.h"
#include "worker/lanes/text_assembler.h"

namespace berth::worker {

// One sequence of the context and the job that runs on it. Between two batches it says what it
// wants computed (read, generate), and after a batch what became of it (absorb); so several lanes
// can share one batch. It remembers which tokens its sequence holds, and whose they are, also when
// it is idle: the next job of the same scope that starts with the same tokens need not read them
// again.
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
    return busy() && !parked_ && (!prompt_read_ || unread() > 1);
  }
  // Whether the next batch gives it a token, if its sink has room.
  [[nodiscard]] bool generating() const { return busy() && !parked_ && !reading(); }
  // Tokens to read before it generates. The last one of an answer is read by generate(), which
  // waits for room where text can go to.
  [[nodiscard]] std::size_t to_read() const { return prompt_read_ ? unread() - 1 : unread(); }
  // Whether it has a part in the present batch.
  [[nodiscard]] bool computing() const { return batch_tokens_ > 0; }
  // Tokens that a job could take over from its sequence: never all of the prompt, for the output of
  // the last token is the first token of the answer; none of another scope's (S8).
  [[nodiscard]] std::uint32_t usable_prefix(const Job& job) const { return shared(job, held_); }
  // As usable_prefix(), but when it has read all that it has to.
  [[nodiscard]] std::uint32_t future_prefix(const Job& job) const {
    return shared(job, tokens_.size());
  }
  [[nodiscard]] std::size_t held_tokens() const { return held_; }
  // Cells that are its own while it is busy and not parked; at most a window.
  [[nodiscard]] std::size_t reserved() const { return reserved_; }
  [[nodiscard]] bool parked() const { return parked_; }
  // Whether it may come to need more cells than it began with.
  [[nodiscard]] bool grows() const { return busy() && !job_->limited(); }
  // Whether the draft model has more to read of its text than the latest tokens.
  [[nodiscard]] bool draft_behind() const { return draft_behind_; }
  // When its job began, among all jobs: the youngest has the highest.
  [[nodiscard]] std::uint64_t order() const { return order_; }
  // The youngest job that made use of what it holds.
  [[nodiscard]] std::uint64_t last_used() const { return last_used_; }
  void touch(std::uint64_t order) { last_used_ = order; }

  // Begins a job with so many cells reserved, and takes over what `source` (which may be this lane)
  // holds of its prompt; the lane must be idle.
  void begin(std::unique_ptr<Job> job, Lane& source, std::size_t cells, std::uint64_t order,
             SteadyTime now);
  // Takes over what another lane holds of its tokens, where that is more than it holds itself. Only
  // with EngineFacts::shares_cells.
  void take_over(Lane& source);
  // Reserves so many cells more where the next token needs one that is not reserved. Whether it
  // did.
  bool grow(std::size_t cells);
  void park();
  void unpark() { parked_ = false; }
  // Gives up all but the first `tokens` of what an idle lane's sequence holds (or all of it, where
  // it cannot be cut).
  void trim(std::size_t tokens);

  // Adds the next `count` tokens that are to be read to `batch`; 1 to to_read().
  void read(std::vector<BatchItem>& batch, std::size_t count);
  // Adds the token that was generated last. For a generating lane whose sink has room.
  void generate(std::vector<BatchItem>& batch) { read(batch, 1); }
  // The same with what a draft model proposes after it. A draft model that is not far behind may
  // read what it needs whatever the limit. Says what that did.
  DraftStep generate(std::vector<BatchItem>& batch, DraftLimits limits);
  // The batch was computed: takes the next tokens from the engine if there are any. `now` is after
  // the batch.
  void absorb(SteadyTime now);
  // The batch was not computed to its end: forgets its part of it. The job cannot go on.
  void undo();
  // Ends the job before its time.
  void end(JobEnd end);

 private:
  // So many tokens without text (control tokens that are not shown) wait for a text to go with.
  static constexpr std::size_t kMaxSilentTokens = 64;

  // How an answer is complete; nothing: it goes on.
  using Completion = std::optional<JobResult::Finish>;

  [[nodiscard]] std::uint32_t shared(const Job& job, std::size_t limit) const;
  [[nodiscard]] std::size_t unread() const { return tokens_.size() - held_; }
  DraftStep propose(DraftLimits limits);
  Result<Completion> take_tokens(SteadyTime now);
  Result<Completion> take_token(std::size_t output, SteadyTime now);
  // Keeps of the proposals what the answer has in common with them.
  void settle_proposals();
  // What was not sent yet, be it text or only tokens.
  void send();
  void finish(JobResult::Finish finish, SteadyTime now);

  SequenceId sequence_;
  Engine* engine_;
  std::unique_ptr<Job> job_;
  std::string scope_;            // whose tokens_ are
  std::vector<TokenId> tokens_;  // the prompt and what was generated; at most one window
  // So many of them the sequence holds, with the batch's; not counting proposals.
  std::size_t held_ = 0;
  std::size_t reserved_ = 0;
  std::uint64_t order_ = 0;
  std::uint64_t last_used_ = 0;
  bool parked_ = false;

  // Its part of the present batch.
  std::size_t batch_tokens_ = 0;    // without proposals
  std::size_t output_index_ = 0;    // of its first output in the batch; proposals' follow
  std::vector<TokenId> proposals_;  // the sequence holds them behind tokens_

  // The generation.
  TextAssembler assembler_;
  bool prompt_read_ = false;
  JobResult result_;
  SteadyTime began_{};
  SteadyTime read_prompt_{};          // when the prompt was read
  std::string piece_;                 // scratch
  std::string text_;                  // not sent yet
  std::vector<SampledToken> unsent_;  // tokens whose text is not sent yet
  DraftPace pace_;
  bool draft_behind_ = true;  // the draft model has more to read than a few tokens
  // Wrong proposals cost a second reading of everything here, so there are none any more.
  bool cannot_cut_ = false;
};

}  // namespace berth::worker
