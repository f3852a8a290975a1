#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "worker/engine/engine.h"
#include "worker/lanes/job.h"
#include "worker/lanes/lane.h"

namespace berth::worker {

// CLOCK_MONOTONIC.
SteadyTime steady_now();

struct LaneActivity {
  std::uint32_t active = 0;   // jobs on a lane
  std::uint32_t waiting = 0;  // jobs in the queue
};

// Told about the runner's state; any thread, never under the runner's lock. Must not block.
class LaneObserver {
 public:
  LaneObserver() = default;
  LaneObserver(const LaneObserver&) = delete;
  LaneObserver& operator=(const LaneObserver&) = delete;
  virtual ~LaneObserver() = default;

  // The number of active jobs changed.
  virtual void on_activity() = 0;
  // After drain(): nothing is left to do.
  virtual void on_drained() = 0;
};

// The one thread that owns the context (S1): takes jobs from a bounded queue in their order, puts
// them on lanes and computes their batches until it is stopped. A batch holds one token of each
// lane that generates, and then as much of the waiting prompts as fits.
//
// The lanes share one pool of cells (M4). A job begins when the cells that it will need are not
// reserved by others: its prompt and max_tokens, or without max_tokens a share that grows with the
// answer. When growing lanes need more than there is, the youngest is parked until there is room;
// no answer is ever cut for want of cells. What idle lanes hold is given up when it is needed.
//
// submit(), wake(), drain(), set_threads(), stop(), activity() and progress() may be called from
// any thread at any time; run() is the context thread. Outlives every job's sink.
class LaneRunner {
 public:
  using Now = std::function<SteadyTime()>;
  static constexpr std::size_t kQueueLimit = 256;

  explicit LaneRunner(LaneObserver& observer, Now now = &steady_now);
  LaneRunner(const LaneRunner&) = delete;
  LaneRunner& operator=(const LaneRunner&) = delete;
  ~LaneRunner() = default;

  // Computes jobs with `engine` until stop(). Jobs may have been submitted before.
  void run(Engine& engine);

  // Queues a job; its sink will hear the end. Errors (the sink hears nothing then): kQueueFull,
  // kDraining after drain(), kShuttingDown after stop().
  Status submit(std::unique_ptr<Job> job);
  // A sink has room again or was cancelled, or (in tests) time has moved.
  void wake();
  // No new jobs; LaneObserver::on_drained() follows when the last one has ended.
  void drain();
  // Compute threads from the next batch on; 0 changes nothing, too many mean all.
  void set_threads(std::uint32_t threads) { wanted_threads_ = threads; }
  // Ends every job with kShuttingDown, within one chunk, and then run().
  void stop();

  [[nodiscard]] LaneActivity activity() const;
  // Grows with every batch, and within a batch where the engine asks its abort check.
  [[nodiscard]] std::uint64_t progress() const { return progress_.load(std::memory_order_relaxed); }

 private:
  enum class Step : std::uint8_t { kWorked, kNothingToDo };

  struct Ended {
    std::unique_ptr<Job> job;
    JobEnd end;
  };
  // Both with the lock held: take out of the queue what has ended, and what idle lanes can begin.
  void sweep_queue(SteadyTime now, std::vector<Ended>& ended);
  void take_admitted(std::vector<std::unique_ptr<Job>>& admitted);

  // Keeps what is reserved within the pool: parks the youngest, or lets parked lanes go on.
  void balance();
  // Gives up what idle lanes hold, the longest idle first, until the rest fits into the pool.
  void make_room();
  [[nodiscard]] std::size_t cells_for(const Job& job) const;
  [[nodiscard]] std::size_t reserved() const;  // by lanes that are busy and not parked
  // Of the busy lanes; null where there is none.
  Lane* youngest_running();
  Lane* oldest_parked();

  void sweep_lanes(SteadyTime now);
  Step step();
  bool should_abort();
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;
  void wait(std::unique_lock<std::mutex>& lock);
  void tell_changes();
  void end_all();
  Lane* best_lane(const std::vector<TokenId>& prompt);

  LaneObserver& observer_;
  Now now_;
  std::atomic<std::uint64_t> progress_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint32_t> wanted_threads_{0};

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Job>> queue_;
  bool woken_ = false;
  bool draining_ = false;
  bool drained_ = false;
  std::uint32_t active_ = 0;

  // Context thread only.
  Engine* engine_ = nullptr;
  std::vector<Lane> lanes_;
  std::uint64_t begun_ = 0;  // jobs so far
  std::size_t growth_ = 1;   // cells that an answer without max_tokens begins with and grows by
  std::vector<BatchItem> batch_;
  std::uint32_t told_active_ = 0;
};

}  // namespace berth::worker
