#include "worker/lanes/lane.h"

#include <algorithm>
#include <utility>

namespace berth::worker {

std::uint32_t Lane::common_prefix(const std::vector<TokenId>& prompt) const {
  const auto end = std::mismatch(prompt.begin(), prompt.end(), tokens_.begin(), tokens_.end());
  return static_cast<std::uint32_t>(end.first - prompt.begin());
}

void Lane::begin(std::unique_ptr<Job> job, std::size_t cells, std::uint64_t order, SteadyTime now) {
  job_ = std::move(job);
  reserved_ = cells;
  order_ = order;
  parked_ = false;
  // The last token is always computed: its output is the first token of the answer.
  const auto wanted =
      std::min(common_prefix(job_->prompt), static_cast<std::uint32_t>(job_->prompt.size() - 1));
  held_ = engine_->keep_prefix(sequence_, wanted);
  tokens_ = job_->prompt;
  prompt_read_ = false;
  batch_tokens_ = 0;
  job_->sampler->accept_prompt(tokens_);
  assembler_ = TextAssembler(std::move(job_->stop));
  result_ = JobResult{};
  result_.prompt_tokens = static_cast<std::uint32_t>(tokens_.size());
  result_.cached_tokens = static_cast<std::uint32_t>(held_);
  result_.timings.queue = now - job_->arrived;
  began_ = now;
  read_prompt_ = now;
  text_.clear();
  unsent_.clear();
}

bool Lane::grow(std::size_t cells) {
  if (!busy() || tokens_.size() <= reserved_) return false;
  reserved_ = std::min(std::max(reserved_ + cells, tokens_.size()),
                       static_cast<std::size_t>(engine_->facts().window));
  return true;
}

void Lane::park() {
  parked_ = true;
  engine_->keep_prefix(sequence_, 0);
  held_ = 0;
}

void Lane::forget() {
  engine_->keep_prefix(sequence_, 0);
  held_ = 0;
  tokens_.clear();
}

void Lane::fill(std::vector<BatchItem>& batch, std::size_t limit) {
  batch_tokens_ = 0;
  if (!busy() || parked_ || limit == 0) return;
  // What was generated is computed when its text has a place to go to.
  if (!reading() && !job_->sink->has_room()) return;
  const auto count = std::min(limit, tokens_.size() - held_);
  for (std::size_t i = 0; i < count; ++i) {
    batch.push_back(BatchItem{sequence_, tokens_[held_], static_cast<std::uint32_t>(held_), false});
    ++held_;
  }
  batch.back().wants_output = held_ == tokens_.size();
  batch_tokens_ = count;
  output_index_ = batch.size() - 1;
}

void Lane::absorb(SteadyTime now) {
  if (!busy() || batch_tokens_ == 0) return;
  batch_tokens_ = 0;
  if (held_ < tokens_.size()) {
    if (!prompt_read_) {
      job_->sink->on_prefill(static_cast<std::uint32_t>(held_), result_.prompt_tokens);
    }
    return;
  }
  if (!prompt_read_) {
    prompt_read_ = true;
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
  auto sampled = engine_->sample(*job_->sampler, output_index_);
  if (!sampled) {
    end(sampled.error());
    return;
  }
  const auto token = sampled->token;
  if (result_.completion_tokens == 0) result_.timings.first_token = now - job_->arrived;
  if (engine_->ends_generation(token)) {
    finish(JobResult::Finish::kStop, now);
    return;
  }
  tokens_.push_back(token);
  ++result_.completion_tokens;
  unsent_.push_back(std::move(*sampled));
  piece_.clear();
  const auto& shown = job_->shown_controls;
  engine_->append_piece(token, piece_, std::find(shown.begin(), shown.end(), token) != shown.end());
  if (assembler_.push(piece_, text_)) {
    finish(JobResult::Finish::kStop, now);
  } else if (result_.completion_tokens >= job_->max_tokens ||
             tokens_.size() >= engine_->facts().window) {
    finish(JobResult::Finish::kLength, now);
  } else {
    send_text();
  }
}

void Lane::send_text() {
  if (text_.empty()) return;
  job_->sink->on_token(text_, unsent_);
  text_.clear();
  unsent_.clear();
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
  const auto wanted = held_ - batch_tokens_;
  batch_tokens_ = 0;
  held_ = engine_->keep_prefix(sequence_, static_cast<std::uint32_t>(wanted));
}

void Lane::end(JobEnd end) {
  const auto sink = std::move(job_->sink);
  job_.reset();
  tokens_.resize(held_);
  reserved_ = 0;
  parked_ = false;
  sink->on_end(std::move(end));
}

}  // namespace berth::worker
