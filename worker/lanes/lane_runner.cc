#include "worker/lanes/lane_runner.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace berth::worker {

SteadyTime steady_now() {
  return SteadyTime(
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

LaneRunner::LaneRunner(LaneObserver& observer, Now now)
    : observer_(observer), now_(std::move(now)) {}

Status LaneRunner::submit(std::unique_ptr<Job> job) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return fail(shutting_down());
    if (draining_) {
      return fail(Reason::kDraining, "This worker takes no new work; ask again.");
    }
    if (queue_.size() >= kQueueLimit) {
      return fail(Reason::kQueueFull, "Too many requests wait for this model (" +
                                          std::to_string(kQueueLimit) + "); ask again later.");
    }
    queue_.push_back(std::move(job));
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
  return {active_, static_cast<std::uint32_t>(queue_.size())};
}

bool LaneRunner::should_abort() {
  progress_.fetch_add(1, std::memory_order_relaxed);
  if (stopping_.load(std::memory_order_relaxed)) return true;
  // Others on the same batch must not suffer from one that was cancelled.
  return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) {
    return !lane.computing() || lane.job().sink->cancelled();
  });
}

void LaneRunner::run(Engine& engine) {
  engine_ = &engine;
  engine.set_abort_check([this] { return should_abort(); });
  const auto& facts = engine.facts();
  lanes_.reserve(facts.sequences);
  for (SequenceId id = 0; id < static_cast<SequenceId>(facts.sequences); ++id) {
    lanes_.emplace_back(id, engine);
  }
  batch_.reserve(facts.batch);
  growth_ = std::max<std::size_t>(1, facts.window / (2 * facts.sequences));

  std::vector<Ended> ended;
  std::vector<std::unique_ptr<Job>> admitted;
  while (!stopping_) {
    const auto now = now_();
    sweep_lanes(now);
    balance();
    {
      const std::lock_guard lock(mutex_);
      woken_ = false;
      sweep_queue(now, ended);
      take_admitted(admitted);
    }
    for (auto& one : ended) one.job->sink->on_end(std::move(one.end));
    ended.clear();
    for (auto& job : admitted) {
      const auto cells = cells_for(*job);
      auto* const lane = best_lane(job->prompt);
      lane->begin(std::move(job), cells, ++begun_, now);
    }
    make_room();
    admitted.clear();
    tell_changes();
    if (const auto threads = wanted_threads_.exchange(0); threads != 0) {
      engine.set_threads(threads);
    }
    if (step() == Step::kNothingToDo) {
      std::unique_lock lock(mutex_);
      wait(lock);
    }
  }
  end_all();
}

void LaneRunner::sweep_queue(SteadyTime now, std::vector<Ended>& ended) {
  for (auto at = queue_.begin(); at != queue_.end();) {
    if (auto end = reason_to_end(*(*at)->sink, (*at)->deadline, now)) {
      ended.push_back(Ended{std::move(*at), std::move(*end)});
      at = queue_.erase(at);
    } else {
      ++at;
    }
  }
}

// S4: a job counts as active in the same critical section that takes it from the queue.
void LaneRunner::take_admitted(std::vector<std::unique_ptr<Job>>& admitted) {
  auto idle =
      std::count_if(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return !lane.busy(); });
  // Who began already goes first, and the queue keeps its order: nobody waits for ever.
  if (oldest_parked() != nullptr) return;
  auto free = engine_->facts().cells - reserved();
  for (; idle > 0 && !queue_.empty(); --idle) {
    const auto needed = cells_for(*queue_.front());
    if (needed > free) return;
    free -= needed;
    admitted.push_back(std::move(queue_.front()));
    queue_.pop_front();
    ++active_;
  }
}

std::size_t LaneRunner::cells_for(const Job& job) const {
  const bool open_end = job.max_tokens == std::numeric_limits<std::uint32_t>::max();
  const std::size_t answer = open_end ? growth_ : job.max_tokens;
  return std::min(job.prompt.size() + answer, static_cast<std::size_t>(engine_->facts().window));
}

std::size_t LaneRunner::reserved() const {
  std::size_t cells = 0;
  for (const auto& lane : lanes_) {
    if (lane.busy() && !lane.parked()) cells += lane.reserved();
  }
  return cells;
}

Lane* LaneRunner::youngest_running() {
  Lane* youngest = nullptr;
  for (auto& lane : lanes_) {
    if (!lane.busy() || lane.parked()) continue;
    if (youngest == nullptr || lane.order() > youngest->order()) youngest = &lane;
  }
  return youngest;
}

Lane* LaneRunner::oldest_parked() {
  Lane* oldest = nullptr;
  for (auto& lane : lanes_) {
    if (!lane.busy() || !lane.parked()) continue;
    if (oldest == nullptr || lane.order() < oldest->order()) oldest = &lane;
  }
  return oldest;
}

void LaneRunner::balance() {
  const std::size_t cells = engine_->facts().cells;
  bool grew = false;
  for (auto& lane : lanes_) {
    if (!lane.parked()) grew = lane.grow(growth_) || grew;
  }
  // One lane alone never needs more than a window, and the pool has at least one.
  while (grew && reserved() > cells) youngest_running()->park();
  for (auto* lane = oldest_parked(); lane != nullptr; lane = oldest_parked()) {
    if (reserved() + lane->reserved() > cells) break;
    lane->unpark();
  }
  make_room();
}

void LaneRunner::make_room() {
  const auto idle_cells = [this] {
    std::size_t held = 0;
    for (const auto& lane : lanes_) {
      if (!lane.busy()) held += lane.held_tokens();
    }
    return held;
  };
  while (reserved() + idle_cells() > engine_->facts().cells) {
    Lane* longest_idle = nullptr;
    for (auto& lane : lanes_) {
      if (lane.busy() || lane.held_tokens() == 0) continue;
      if (longest_idle == nullptr || lane.order() < longest_idle->order()) longest_idle = &lane;
    }
    if (longest_idle == nullptr) return;
    longest_idle->forget();
  }
}

// The idle lane that holds most of the prompt; of equals the one that loses least.
Lane* LaneRunner::best_lane(const std::vector<TokenId>& prompt) {
  Lane* best = nullptr;
  std::uint32_t best_prefix = 0;
  for (auto& lane : lanes_) {
    if (lane.busy()) continue;
    const auto prefix = lane.common_prefix(prompt);
    if (best == nullptr || prefix > best_prefix ||
        (prefix == best_prefix && lane.held_tokens() < best->held_tokens())) {
      best = &lane;
      best_prefix = prefix;
    }
  }
  return best;
}

void LaneRunner::sweep_lanes(SteadyTime now) {
  for (auto& lane : lanes_) {
    if (!lane.busy()) continue;
    if (auto end = reason_to_end(*lane.job().sink, lane.job().deadline, now))
      lane.end(std::move(*end));
  }
}

LaneRunner::Step LaneRunner::step() {
  const auto limit = engine_->facts().batch;
  batch_.clear();
  // Generating lanes first: each needs one token, so that a long prompt does not stop them.
  for (auto& lane : lanes_) {
    if (lane.busy() && !lane.reading()) lane.fill(batch_, limit - batch_.size());
  }
  for (auto& lane : lanes_) {
    if (lane.reading()) lane.fill(batch_, limit - batch_.size());
  }
  if (batch_.empty()) return Step::kNothingToDo;

  std::string problem;
  const auto outcome = engine_->decode(batch_, problem);
  progress_.fetch_add(1, std::memory_order_relaxed);
  const auto now = now_();
  switch (outcome) {
    case DecodeOutcome::kDone:
      for (auto& lane : lanes_) lane.absorb(now);
      break;
    case DecodeOutcome::kAborted:
      for (auto& lane : lanes_) {
        if (!lane.computing()) continue;
        lane.undo();
        if (!stopping_) lane.end(JobCancelled{});
      }
      break;
    case DecodeOutcome::kFailed:
      for (auto& lane : lanes_) {
        if (!lane.computing()) continue;
        lane.undo();
        lane.end(Error(Reason::kInternal,
                       "The model could not compute the next tokens: " + problem + "."));
      }
      break;
  }
  return Step::kWorked;
}

std::optional<SteadyTime> LaneRunner::next_deadline() const {
  std::optional<SteadyTime> next;
  const auto consider = [&next](const Job& job) {
    if (job.deadline && (!next || *job.deadline < *next)) next = job.deadline;
  };
  for (const auto& job : queue_) consider(*job);
  for (const auto& lane : lanes_) {
    if (lane.busy()) consider(lane.job());
  }
  return next;
}

void LaneRunner::wait(std::unique_lock<std::mutex>& lock) {
  const auto ready = [this] { return woken_ || stopping_.load(); };
  if (const auto deadline = next_deadline()) {
    changed_.wait_for(lock, *deadline - now_(), ready);
  } else {
    changed_.wait(lock, ready);
  }
}

void LaneRunner::tell_changes() {
  const auto busy = static_cast<std::uint32_t>(
      std::count_if(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.busy(); }));
  bool drained = false;
  {
    const std::lock_guard lock(mutex_);
    active_ = busy;
    drained = draining_ && !drained_ && busy == 0 && queue_.empty();
    drained_ = drained_ || drained;
  }
  if (busy != told_active_) {
    told_active_ = busy;
    observer_.on_activity();
  }
  if (drained) observer_.on_drained();
}

void LaneRunner::end_all() {
  std::deque<std::unique_ptr<Job>> left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(queue_);
  }
  for (auto& lane : lanes_) {
    if (lane.busy()) lane.end(shutting_down());
  }
  for (auto& job : left) job->sink->on_end(shutting_down());
  tell_changes();
}

}  // namespace berth::worker
