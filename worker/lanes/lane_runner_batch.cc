// LaneRunner's batches; its queues and turns are in lane_runner.cc.

#include "worker/lanes/lane_runner.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace berth::worker {

bool LaneRunner::compute_batch() {
  if (engine_->facts().purpose == Purpose::kEmbed) {
    const auto began = now_();
    if (!embeds_.compute(now_)) return false;
    computed(began, now_());
    return true;
  }
  batch_.clear();
  const auto read = lanes_.fill(batch_, speed_, now_);
  if (batch_.empty()) return false;

  std::string problem;
  const auto began = now_();
  plan_restart(read, began);
  const auto outcome = engine_->decode(batch_, problem);
  const auto now = now_();
  computed(began, now);
  switch (outcome) {
    case DecodeOutcome::kDone:
      // Batches of single tokens say little about how fast prompts are read.
      if (read * 2 >= batch_.size()) {
        speed_.add(batch_.size(), now - began);
      } else if (read > 0) {
        speed_.raise(batch_.size(), now - began);
      }
      for (auto& lane : lanes_) lane.absorb(now);
      break;
    case DecodeOutcome::kAborted:
      if (restarting_ && !stopping_) {
        for (auto& lane : lanes_) lane.undo();
      } else {
        give_up_batch(std::nullopt, now);
      }
      break;
    case DecodeOutcome::kFailed:
      give_up_batch(
          Error(Reason::kInternal, "The model could not compute the next tokens: " + problem + "."),
          now);
      break;
  }
  return true;
}

void LaneRunner::plan_restart(std::size_t read, SteadyTime now) {
  if (read < batch_.size() || lanes_.idle() == 0 || !speed_.known()) {
    restart_until_.reset();
  } else if (!restarting_) {
    restart_until_ = now + speed_.time_for(read) / kRestartPart;
  }
  restarting_ = false;
}

bool LaneRunner::should_restart() {
  if (!restart_until_ || !arrived_.load(std::memory_order_relaxed)) return false;
  restarting_ = now_() < *restart_until_;
  if (!restarting_) restart_until_.reset();
  return restarting_;
}

void LaneRunner::computed(SteadyTime began, SteadyTime ended) {
  progress_.fetch_add(1, std::memory_order_relaxed);
  if (const auto threads = pace_.add(began, ended)) engine_->set_threads(*threads);
}

// Without an error nobody wanted it, or the runner is stopped; then end_all() has the last word.
void LaneRunner::give_up_batch(const std::optional<Error>& error, SteadyTime now) {
  for (auto& lane : lanes_) {
    if (!lane.computing()) continue;
    lane.undo();
    if (error) {
      lane.end(*error);
    } else if (!stopping_) {
      auto reason = reason_to_end(*lane.job().sink, lane.job().deadline, now);
      lane.end(reason ? std::move(*reason) : JobEnd(JobCancelled{}));
    }
  }
}

bool LaneRunner::should_abort() {
  const auto count = progress_.fetch_add(1, std::memory_order_relaxed);
  if (stopping_.load(std::memory_order_relaxed)) return true;
  if (should_restart()) return true;
  // It is asked for every node of the model's graph; the clock need not be.
  if (count % kChecksPerClock == 0) batch_now_ = now_();
  // Others on the same batch must not suffer from one that has ended.
  return embeds_.all_given_up(batch_now_) &&
         std::all_of(lanes_.begin(), lanes_.end(), [this](const Lane& lane) {
           return !lane.computing() || wants_to_end(lane.job(), batch_now_);
         });
}

}  // namespace berth::worker
