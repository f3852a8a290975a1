#include "worker/lanes/lane.h"

#include <algorithm>
#include <utility>

namespace berth::worker {

std::uint32_t Lane::common_prefix(const std::vector<TokenId>& prompt) const {
  const auto end = std::mismatch(prompt.begin(), prompt.end(), held_.begin(), held_.end());
  return static_cast<std::uint32_t>(end.first - prompt.begin());
}

void Lane::begin(std::unique_ptr<Job> job, SteadyTime now) {
  job_ = std::move(job);
  // The last token is always computed: its output is the first token of the answer.
  const auto wanted =
      std::min(common_prefix(job_->prompt), static_cast<std::uint32_t>(job_->prompt.size() - 1));
  const auto kept = engine_->keep_prefix(sequence_, wanted);
  held_.resize(kept);
  read_ = kept;
  batch_tokens_ = 0;
  sampler_ = engine_->make_sampler(job_->sampling);
  assembler_ = TextAssembler(std::move(job_->stop));
  result_ = JobResult{};
  result_.prompt_tokens = static_cast<std::uint32_t>(job_->prompt.size());
  result_.cached_tokens = kept;
  result_.timings.queue = now - job_->arrived;
  began_ = now;
  read_prompt_ = now;
  text_.clear();
  ids_.clear();
}

void Lane::fill(std::vector<BatchItem>& batch, std::size_t limit) {
  batch_tokens_ = 0;
  if (!busy() || limit == 0) return;
  const auto position = [this] { return static_cast<std::uint32_t>(held_.size()); };
  if (reading_prompt()) {
    const auto& prompt = job_->prompt;
    const auto count = std::min(limit, prompt.size() - read_);
    for (std::size_t i = 0; i < count; ++i) {
      batch.push_back(BatchItem{sequence_, prompt[read_], position(), false});
      held_.push_back(prompt[read_++]);
    }
    batch.back().wants_output = !reading_prompt();
    batch_tokens_ = count;
  } else if (job_->sink->has_room()) {
    batch.push_back(BatchItem{sequence_, next_, position(), true});
    held_.push_back(next_);
    batch_tokens_ = 1;
  }
  output_index_ = batch.size() - 1;
}

void Lane::absorb(SteadyTime now) {
  if (!busy() || batch_tokens_ == 0) return;
  batch_tokens_ = 0;
  const auto total = result_.prompt_tokens;
  if (reading_prompt()) {
    job_->sink->on_prefill(static_cast<std::uint32_t>(read_), total);
    return;
  }
  if (held_.size() == job_->prompt.size()) {  // the batch ended the prompt
    read_prompt_ = now;
    result_.timings.prefill = now - began_;
    if (job_->max_tokens == 0) {
      finish(JobResult::Finish::kLength, now);
      return;
    }
  }
  take_token(now);
}

void Lane::take_token(SteadyTime now) {
  const auto token = engine_->sample(*sampler_, output_index_);
  if (!token) {
    end(token.error());
    return;
  }
  if (result_.completion_tokens == 0) result_.timings.first_token = now - job_->arrived;
  if (engine_->ends_generation(*token)) {
    finish(JobResult::Finish::kStop, now);
    return;
  }
  next_ = *token;
  ++result_.completion_tokens;
  ids_.push_back(next_);
  piece_.clear();
  engine_->append_piece(next_, piece_);
  if (assembler_.push(piece_, text_)) {
    finish(JobResult::Finish::kStop, now);
  } else if (result_.completion_tokens >= job_->max_tokens ||
             held_.size() + 1 >= engine_->facts().window) {
    finish(JobResult::Finish::kLength, now);
  } else {
    send_text();
  }
}

void Lane::send_text() {
  if (text_.empty()) return;
  job_->sink->on_token(text_, ids_);
  text_.clear();
  ids_.clear();
}

void Lane::finish(JobResult::Finish finish, SteadyTime now) {
  result_.finish = finish;
  if (assembler_.met().empty() && assembler_.finish(text_)) {
    result_.finish = JobResult::Finish::kStop;
  }
  result_.stop_text = assembler_.met();
  send_text();
  result_.timings.decode = now - read_prompt_;
  end(std::move(result_));
}

void Lane::undo() {
  if (batch_tokens_ == 0) return;
  const auto wanted = held_.size() - batch_tokens_;
  batch_tokens_ = 0;
  held_.resize(engine_->keep_prefix(sequence_, static_cast<std::uint32_t>(wanted)));
}

void Lane::end(JobEnd end) {
  const auto sink = std::move(job_->sink);
  job_.reset();
  sampler_.reset();
  sink->on_end(std::move(end));
}

}  // namespace berth::worker
