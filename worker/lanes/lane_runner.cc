// Its queues and turns; the batches are in lane_runner_batch.cc.

#include "worker/lanes/lane_runner.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace berth::worker {
namespace {

Error embeddings_only() {
  return {Reason::kInvalidArgument,
          "This model is served for embeddings only; it cannot generate text."};
}

Error no_embeddings() {
  return {Reason::kInvalidArgument,
          "This model is served for generating text only; it gives no embeddings."};
}

// Takes what has ended out of a queue. `reason` says why a job ends, if it does.
template <typename Queue, typename Ended, typename ReasonOf>
void sweep_queue(Queue& queue, std::vector<Ended>& ended, ReasonOf&& reason) {
  for (auto& job : queue) {
    if (auto end = reason(*job)) ended.push_back(Ended{std::move(job), std::move(*end)});
  }
  std::erase_if(queue, [](const auto& job) { return job == nullptr; });
}

}  // namespace

SteadyTime steady_now() {
  return SteadyTime(
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

LaneRunner::LaneRunner(LaneObserver& observer, Now now, ThreadPace::RunDelay run_delay)
    : observer_(observer), now_(std::move(now)), pace_(std::move(run_delay)) {}

// --- any thread

Status LaneRunner::check_open(std::size_t waiting) const {
  if (stopping_) return fail(shutting_down());
  if (draining_) return fail(Reason::kDraining, "This worker takes no new work; ask again.");
  if (waiting < kQueueLimit) return {};
  return fail(Reason::kQueueFull, "Too many requests wait for this model (" +
                                      std::to_string(kQueueLimit) + "); ask again later.");
}

Status LaneRunner::submit(std::unique_ptr<Job> job) {
  {
    const std::lock_guard lock(mutex_);
    if (purpose_ == Purpose::kEmbed) return fail(embeddings_only());
    if (auto open = check_open(queue_.size()); !open) return open;
    queue_.push_back(std::move(job));
    woken_ = true;
    arrived_ = true;
  }
  changed_.notify_one();
  return {};
}

Status LaneRunner::submit_embed(std::unique_ptr<EmbedJob> job) {
  if (job->inputs.empty()) {
    return fail(Reason::kInvalidArgument,
                "There is nothing to embed: the list of inputs is empty.");
  }
  {
    const std::lock_guard lock(mutex_);
    if (purpose_ == Purpose::kGenerate) return fail(no_embeddings());
    // Those that have begun still hold all of their inputs.
    if (auto open = check_open(embed_queue_.size() + active_); !open) return open;
    embed_queue_.push_back(std::move(job));
    woken_ = true;
  }
  changed_.notify_one();
  return {};
}

void LaneRunner::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_one();
}

void LaneRunner::drain() {
  {
    const std::lock_guard lock(mutex_);
    draining_ = true;
    woken_ = true;
  }
  changed_.notify_one();
}

void LaneRunner::stop() {
  stopping_ = true;
  wake();
}

LaneActivity LaneRunner::activity() const {
  const std::lock_guard lock(mutex_);
  return {active_, static_cast<std::uint32_t>(queue_.size() + embed_queue_.size())};
}

// --- context thread

void LaneRunner::open(Engine& engine) {
  engine_ = &engine;
  engine.set_abort_check([this] { return should_abort(); });
  const auto& facts = engine.facts();
  pace_.grant(facts.threads);
  if (facts.purpose == Purpose::kGenerate) lanes_.open(engine);
  embeds_.open(engine);
  batch_.reserve(facts.batch);
  const std::lock_guard lock(mutex_);
  purpose_ = facts.purpose;
  refuse_other_purpose(taken_);
}

void LaneRunner::run(Engine& engine) {
  open(engine);
  while (!stopping_) {
    if (!turn() && !stopping_) wait();
  }
  end_all();
}

bool LaneRunner::turn() {
  if (stopping_) {
    end_all();
    return false;
  }
  {
    // First: what somebody is woken for from here on may already have been looked at.
    const std::lock_guard lock(mutex_);
    woken_ = false;
  }
  const auto now = now_();
  batch_now_ = now;
  sweep_lanes(now);
  if (engine_->facts().purpose == Purpose::kGenerate) lanes_.balance(foreseen_);
  look_at_queues(now);
  tell_changes();
  if (const auto threads = wanted_threads_.exchange(0); threads != 0) {
    pace_.grant(std::min(threads, engine_->facts().threads));
    engine_->set_threads(pace_.threads());
  }
  return compute_batch();
}

void LaneRunner::look_at_queues(SteadyTime now) {
  {
    const std::lock_guard lock(mutex_);
    arrived_ = false;
    sweep_queues(now, taken_);
    take_admitted(taken_);
    foreseen_.clear();
    for (const auto& job : queue_) {
      if (foreseen_.size() == kForeseen) break;
      foreseen_.push_back(job.get());
    }
  }
  for (auto& one : taken_.ended) one.job->sink->on_end(std::move(one.end));
  for (auto& one : taken_.embeds_ended) one.job->sink->on_end(std::move(one.end));
  for (auto& job : taken_.embeds_admitted) embeds_.add(std::move(job), now);
  if (!taken_.admitted.empty()) {
    for (auto& job : taken_.admitted) lanes_.start(std::move(job), now);
    lanes_.make_room(foreseen_);
  }
  taken_ = Taken{};
}

void LaneRunner::refuse_other_purpose(Taken& taken) {
  if (purpose_ == Purpose::kEmbed) {
    sweep_queue(queue_, taken.ended,
                [](const Job&) { return std::optional<JobEnd>(embeddings_only()); });
  } else {
    sweep_queue(embed_queue_, taken.embeds_ended,
                [](const EmbedJob&) { return std::optional<EmbedEnd>(no_embeddings()); });
  }
}

void LaneRunner::sweep_queues(SteadyTime now, Taken& taken) {
  sweep_queue(queue_, taken.ended,
              [now](const Job& job) { return reason_to_end(*job.sink, job.deadline, now); });
  sweep_queue(embed_queue_, taken.embeds_ended,
              [now](const EmbedJob& job) { return reason_to_end(job, now); });
}

// S4: a job counts as active in the same critical section that takes it from the queue.
void LaneRunner::take_admitted(Taken& taken) {
  for (auto& job : embed_queue_) taken.embeds_admitted.push_back(std::move(job));
  embed_queue_.clear();
  active_ += static_cast<std::uint32_t>(taken.embeds_admitted.size());
  // Who began already goes first, and the queue keeps its order: nobody waits for ever.
  if (queue_.empty() || lanes_.someone_parked()) return;
  auto free = lanes_.free_cells();
  for (auto idle = lanes_.idle(); idle > 0 && !queue_.empty(); --idle) {
    const auto needed = lanes_.cells_for(*queue_.front());
    if (needed > free) return;
    free -= needed;
    taken.admitted.push_back(std::move(queue_.front()));
    queue_.pop_front();
    ++active_;
  }
}

void LaneRunner::sweep_lanes(SteadyTime now) {
  for (auto& lane : lanes_) {
    if (!lane.busy()) continue;
    if (auto end = reason_to_end(*lane.job().sink, lane.job().deadline, now)) {
      lane.end(std::move(*end));
    }
  }
  embeds_.sweep(now);
}

std::optional<SteadyTime> LaneRunner::next_deadline() const {
  auto next = embeds_.next_deadline();
  const auto consider = [&next](const Job& job) {
    if (job.deadline && (!next || *job.deadline < *next)) next = job.deadline;
  };
  for (const auto& job : queue_) consider(*job);
  for (const auto& lane : lanes_.all()) {
    if (lane.busy()) consider(lane.job());
  }
  return next;
}

void LaneRunner::wait() {
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return woken_ || stopping_.load(); };
  if (const auto deadline = next_deadline()) {
    changed_.wait_for(lock, *deadline - now_(), ready);
  } else {
    changed_.wait(lock, ready);
  }
}

void LaneRunner::tell_changes() {
  const auto busy = static_cast<std::uint32_t>(lanes_.busy() + embeds_.active());
  bool drained = false;
  {
    const std::lock_guard lock(mutex_);
    active_ = busy;
    drained = draining_ && !drained_ && busy == 0 && queue_.empty() && embed_queue_.empty();
    drained_ = drained_ || drained;
  }
  if (busy != told_active_) {
    told_active_ = busy;
    observer_.on_activity();
  }
  if (drained) observer_.on_drained();
}

void LaneRunner::end_all() {
  decltype(queue_) left;
  decltype(embed_queue_) embeds_left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(queue_);
    embeds_left.swap(embed_queue_);
  }
  foreseen_.clear();
  for (auto& lane : lanes_) {
    if (lane.busy()) lane.end(shutting_down());
  }
  embeds_.end_all(shutting_down());
  for (auto& job : left) job->sink->on_end(shutting_down());
  for (auto& job : embeds_left) job->sink->on_end(shutting_down());
  tell_changes();
}

}  // namespace berth::worker
