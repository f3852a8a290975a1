#include "worker/lanes/embed_turns.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace berth::worker {

void EmbedTurns::add(std::unique_ptr<EmbedJob> job, SteadyTime now) {
  const std::size_t longest = engine_->facts().batch;
  Turn turn;
  turn.result.queue = now - job->arrived;
  for (std::size_t i = 0; i < job->inputs.size(); ++i) {
    const auto size = job->inputs[i].size();
    turn.result.prompt_tokens += size;
    if (size >= 1 && size <= longest) continue;
    job->sink->on_end(Error(Reason::kInvalidArgument, "Input " + std::to_string(i) + " has " +
                                                          std::to_string(size) +
                                                          " tokens; each must have from 1 to " +
                                                          std::to_string(longest) + "."));
    return;
  }
  turn.job = std::move(job);
  turns_.push_back(std::move(turn));
}

void EmbedTurns::end(Turn& turn, EmbedEnd end) {
  const auto job = std::move(turn.job);
  job->sink->on_end(std::move(end));
}

void EmbedTurns::sweep(SteadyTime now) {
  for (auto& turn : turns_) {
    if (auto reason = reason_to_end(*turn.job, now)) end(turn, std::move(*reason));
  }
  std::erase_if(turns_, [](const Turn& turn) { return turn.job == nullptr; });
}

void EmbedTurns::make_group() {
  group_.clear();
  std::size_t room = engine_->facts().batch;
  const std::size_t most = std::max<std::size_t>(1, engine_->facts().sequences);
  bool full = false;
  for (auto& turn : turns_) {
    turn.in_group = 0;
    if (full || (turn.alone && !group_.empty())) break;
    const auto& inputs = turn.job->inputs;
    for (auto next = turn.result.vectors.size(); next < inputs.size() && !full; ++next) {
      full = group_.size() == most || inputs[next].size() > room;
      if (full) break;
      room -= inputs[next].size();
      group_.push_back(inputs[next]);
      ++turn.in_group;
    }
    full = full || turn.alone;
  }
}

bool EmbedTurns::compute(const std::function<SteadyTime()>& now) {
  if (turns_.empty()) return false;
  make_group();
  vectors_.clear();
  std::string problem;
  switch (engine_->embed(group_, vectors_, problem)) {
    case DecodeOutcome::kDone:
      if (vectors_.size() != group_.size()) {
        fail_group(Error(Reason::kInternal, "The model computed too few embeddings."));
      } else {
        take_vectors();
      }
      break;
    case DecodeOutcome::kAborted:
      sweep(now());
      break;
    case DecodeOutcome::kFailed:
      fail_group(
          Error(Reason::kInternal, "The model could not compute the embeddings: " + problem + "."));
      break;
  }
  for (auto& turn : turns_) turn.in_group = 0;
  return true;
}

void EmbedTurns::take_vectors() {
  auto vector = vectors_.begin();
  std::size_t contributors = 0;
  const bool several = turns_.size() > 1 && turns_[1].in_group > 0;
  for (auto& turn : turns_) {
    if (turn.in_group == 0) break;
    ++contributors;
    auto& done = turn.result.vectors;
    const auto end = std::next(vector, static_cast<std::ptrdiff_t>(turn.in_group));
    const auto unusable = std::find_if(vector, end, [](const auto& one) { return one.empty(); });
    if (unusable != end) {
      const auto input = done.size() + static_cast<std::size_t>(unusable - vector);
      vector = end;
      if (several) {
        turn.alone = true;
      } else {
        EmbedTurns::end(
            turn, Error(Reason::kInternal, "The model computed no usable embedding of input " +
                                               std::to_string(input) + "."));
      }
      continue;
    }
    turn.alone = false;
    done.insert(done.end(), std::make_move_iterator(vector), std::make_move_iterator(end));
    vector = end;
    if (done.size() == turn.job->inputs.size()) EmbedTurns::end(turn, std::move(turn.result));
  }
  std::rotate(turns_.begin(), turns_.begin() + static_cast<std::ptrdiff_t>(contributors),
              turns_.end());
  std::erase_if(turns_, [](const Turn& turn) { return turn.job == nullptr; });
}

void EmbedTurns::fail_group(const Error& error) {
  const bool several = turns_.size() > 1 && turns_[1].in_group > 0;
  for (auto& turn : turns_) {
    if (turn.in_group == 0) break;
    if (several) {
      turn.alone = true;
    } else {
      end(turn, error);
    }
  }
  std::erase_if(turns_, [](const Turn& turn) { return turn.job == nullptr; });
}

bool EmbedTurns::all_given_up(SteadyTime now) const {
  return std::all_of(turns_.begin(), turns_.end(), [now](const Turn& turn) {
    return turn.in_group == 0 || wants_to_end(*turn.job, now);
  });
}

std::optional<SteadyTime> EmbedTurns::next_deadline() const {
  std::optional<SteadyTime> next;
  for (const auto& turn : turns_) {
    const auto& deadline = turn.job->deadline;
    if (deadline && (!next || *deadline < *next)) next = deadline;
  }
  return next;
}

void EmbedTurns::end_all(const Error& error) {
  for (auto& turn : turns_) end(turn, error);
  turns_.clear();
}

}  // namespace berth::worker
