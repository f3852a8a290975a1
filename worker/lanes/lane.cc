#include "worker/lanes/lane.h"

#include <algorithm>
#include <utility>

namespace berth::worker {

std::uint32_t Lane::shared(const Job& job, std::size_t limit) const {
  if (scope_ != job.cache_scope) return 0;
  const auto longest = std::min({limit, tokens_.size(), job.prompt.size() - 1});
  const auto end =
      std::mismatch(job.prompt.begin(), job.prompt.begin() + static_cast<std::ptrdiff_t>(longest),
                    tokens_.begin());
  return static_cast<std::uint32_t>(end.first - job.prompt.begin());
}

void Lane::begin(std::unique_ptr<Job> job, Lane& source, std::size_t cells, std::uint64_t order,
                 SteadyTime now) {
  const auto wanted = source.usable_prefix(*job);
  held_ = &source == this ? engine_->keep_prefix(sequence_, wanted)
                          : engine_->copy_prefix(source.sequence_, sequence_, wanted);
  job_ = std::move(job);
  if (scope_ != job_->cache_scope) engine_->forget_draft(sequence_);
  scope_ = job_->cache_scope;
  tokens_ = job_->prompt;
  reserved_ = cells;
  order_ = order;
  touch(order);
  source.touch(order);
  parked_ = false;
  prompt_read_ = false;
  batch_tokens_ = 0;
  proposals_.clear();
  job_->sampler->accept_prompt(tokens_);
  assembler_ = TextAssembler(std::move(job_->stop));
  pace_ = DraftPace(engine_->facts().draft_tokens);
  draft_behind_ = true;
  result_ = JobResult{};
  result_.prompt_tokens = static_cast<std::uint32_t>(tokens_.size());
  result_.cached_tokens = result_.prompt_tokens;  // until they are computed
  result_.timings.queue = now - job_->arrived;
  began_ = now;
  read_prompt_ = now;
  text_.clear();
  unsent_.clear();
}

void Lane::take_over(Lane& source) {
  if (scope_ != source.scope_) return;
  const auto longest = std::min(source.held_, tokens_.size() - 1);
  const auto end =
      std::mismatch(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(longest),
                    source.tokens_.begin());
  const auto prefix = static_cast<std::size_t>(end.first - tokens_.begin());
  if (prefix <= held_) return;
  held_ = engine_->copy_prefix(source.sequence_, sequence_, static_cast<std::uint32_t>(prefix));
  source.touch(order_);
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
  engine_->forget_draft(sequence_);
  draft_behind_ = true;
  held_ = 0;
}

void Lane::trim(std::size_t tokens) {
  held_ = engine_->keep_prefix(sequence_, static_cast<std::uint32_t>(tokens));
  if (held_ == 0) engine_->forget_draft(sequence_);
  tokens_.resize(held_);
}

void Lane::read(std::vector<BatchItem>& batch, std::size_t count) {
  result_.cached_tokens = std::min(result_.cached_tokens, static_cast<std::uint32_t>(held_));
  for (std::size_t i = 0; i < count; ++i) {
    batch.push_back(BatchItem{sequence_, tokens_[held_], static_cast<std::uint32_t>(held_), false});
    ++held_;
  }
  batch.back().wants_output = held_ == tokens_.size();
  batch_tokens_ = count;
  output_index_ = batch.size() - 1;
}

DraftStep Lane::generate(std::vector<BatchItem>& batch, DraftLimits limits) {
  read(batch, 1);  // first: whoever is asked whether to give up within draft() must know of it
  const auto step = propose(limits);
  for (std::size_t i = 0; i < proposals_.size(); ++i) {
    batch.push_back(
        BatchItem{sequence_, proposals_[i], static_cast<std::uint32_t>(held_ + i), true});
  }
  return step;
}

DraftStep Lane::propose(DraftLimits limits) {
  const auto& facts = engine_->facts();
  // Whoever has caught up has the last tokens of each batch to read, and nothing that could wait.
  if (!draft_behind_) limits.read = std::max<std::size_t>(limits.read, facts.draft_tokens + 2);
  if (facts.draft_tokens == 0 || cannot_cut_ || limits.read == 0) return {};
  const auto room = [](std::size_t limit, std::size_t used) {
    return limit > used ? limit - used : 0;
  };
  // Where all are right there is one token more.
  auto& most = limits.proposals;
  most = std::min({most, static_cast<std::size_t>(facts.draft_tokens),
                   room(job_->max_tokens, result_.completion_tokens + 1),
                   room(facts.window, tokens_.size() + 1), room(reserved_, tokens_.size())});
  if (most == 0) return {};
  most = std::min(most, pace_.next());
  if (most == 0) return {};
  const auto step = engine_->draft(sequence_, tokens_, limits, proposals_);
  draft_behind_ = !step.caught_up;
  if (step.caught_up && proposals_.empty()) pace_.learn(0, 0);
  if (proposals_.size() > most) proposals_.resize(most);
  const auto known = std::find_if(proposals_.begin(), proposals_.end(), [&](TokenId token) {
    return token < 0 || static_cast<std::uint32_t>(token) >= facts.vocabulary;
  });
  proposals_.erase(known, proposals_.end());
  result_.drafted_tokens += static_cast<std::uint32_t>(proposals_.size());
  return step;
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
  const auto completion = take_tokens(now);
  settle_proposals();
  if (!completion) {
    end(completion.error());
  } else if (*completion) {
    finish(**completion, now);
  }
}

// Every proposal that the answer goes on with yields one token more without another batch.
Result<Lane::Completion> Lane::take_tokens(SteadyTime now) {
  for (std::size_t i = 0;; ++i) {
    auto completion = take_token(output_index_ + i, now);
    if (!completion || *completion) return completion;
    if (i == proposals_.size() || tokens_.back() != proposals_[i]) return Completion{};
  }
}

Result<Lane::Completion> Lane::take_token(std::size_t output, SteadyTime now) {
  auto sampled = engine_->sample(*job_->sampler, output);
  if (!sampled) return fail(sampled.error());
  const auto token = sampled->token;
  if (result_.completion_tokens == 0) result_.timings.first_token = now - job_->arrived;
  if (engine_->ends_generation(token)) return Completion{JobResult::Finish::kStop};
  tokens_.push_back(token);
  ++result_.completion_tokens;
  unsent_.push_back(std::move(*sampled));
  piece_.clear();
  const auto& shown = job_->shown_controls;
  engine_->append_piece(token, piece_, std::find(shown.begin(), shown.end(), token) != shown.end());
  if (assembler_.push(piece_, text_)) return Completion{JobResult::Finish::kStop};
  if (result_.completion_tokens >= job_->max_tokens || tokens_.size() >= engine_->facts().window) {
    return Completion{JobResult::Finish::kLength};
  }
  if (!text_.empty() || unsent_.size() >= kMaxSilentTokens) send();
  return Completion{};
}

void Lane::settle_proposals() {
  if (proposals_.empty()) return;
  const auto proposed = proposals_.size();
  const auto fresh = tokens_.begin() + static_cast<std::ptrdiff_t>(held_);
  const auto end = std::mismatch(fresh, tokens_.end(), proposals_.begin(), proposals_.end());
  const auto accepted = static_cast<std::size_t>(end.first - fresh);
  proposals_.clear();
  held_ += accepted;
  result_.accepted_tokens += static_cast<std::uint32_t>(accepted);
  pace_.learn(proposed, accepted);
  if (accepted == proposed) return;
  const auto kept = engine_->keep_prefix(sequence_, static_cast<std::uint32_t>(held_));
  if (kept == held_) return;
  held_ = kept;
  cannot_cut_ = true;
}

void Lane::send() {
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
  // Tokens whose text is dropped, as a part of the stop text, are not told of.
  if (!text_.empty() || (result_.stop_text.empty() && !unsent_.empty())) send();
  result_.timings.decode = now - read_prompt_;
  end(std::move(result_));
}

void Lane::undo() {
  if (batch_tokens_ == 0) return;
  const auto wanted = held_ - batch_tokens_;
  batch_tokens_ = 0;
  proposals_.clear();
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
