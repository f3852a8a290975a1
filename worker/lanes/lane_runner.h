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
#include "worker/lanes/chunk_plan.h"
#include "worker/lanes/embed_turns.h"
#include "worker/lanes/job.h"
#include "worker/lanes/lane_set.h"
#include "worker/lanes/run_delay.h"
#include "worker/lanes/thread_pace.h"

namespace berth::worker {

// CLOCK_MONOTONIC.
SteadyTime steady_now();

struct LaneActivity {
  std::uint32_t active = 0;   // jobs on a lane, or embedding jobs that have begun
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
// them on lanes and computes their batches until it is stopped. How lanes share cells and batches
// is LaneSet's affair. A model that is served for embeddings takes embedding jobs only, all others
// take generations only.
//
// submit(), submit_embed(), wake(), drain(), set_threads(), stop(), activity() and progress() may
// be called from any thread at any time; run(), or open() and turn(), are the context thread.
// Outlives every job's sink.
class LaneRunner {
 public:
  using Now = std::function<SteadyTime()>;
  // Jobs that wait, and embedding jobs that wait or have begun: as many as the most sequences
  // (1024), since a supervisor may hand over one for each at once, and 256 more.
  static constexpr std::size_t kQueueLimit = 1024 + 256;

  explicit LaneRunner(LaneObserver& observer, Now now = &steady_now,
                      ThreadPace::RunDelay run_delay = run_delay_reader());
  LaneRunner(const LaneRunner&) = delete;
  LaneRunner& operator=(const LaneRunner&) = delete;
  ~LaneRunner() = default;

  // Computes jobs with `engine` until stop(). Jobs may have been submitted before.
  void run(Engine& engine);
  // The same in steps, for who has a loop of his own: open() once, then turn() again and again. A
  // turn computes at most one batch; false: there was nothing to do, or stop() was called and every
  // job has ended.
  void open(Engine& engine);
  bool turn();

  // Queues a job; its sink will hear the end. Errors (the sink hears nothing then): kQueueFull,
  // kDraining after drain(), kShuttingDown after stop(), kInvalidArgument where the model is served
  // for the other purpose (a job that came before open() ends with it).
  Status submit(std::unique_ptr<Job> job);
  Status submit_embed(std::unique_ptr<EmbedJob> job);
  // A sink has room again or was cancelled, or (in tests) time has moved.
  void wake();
  // No new jobs; LaneObserver::on_drained() follows when the last one has ended.
  void drain();
  // The most that compute from the next batch on (ThreadPace); 0 changes nothing, too many mean
  // all.
  void set_threads(std::uint32_t threads) { wanted_threads_ = threads; }
  // Ends every job with kShuttingDown, within one chunk, and then run().
  void stop();

  [[nodiscard]] LaneActivity activity() const;
  // Grows with every batch, and within a batch where the engine asks its abort check.
  [[nodiscard]] std::uint64_t progress() const { return progress_.load(std::memory_order_relaxed); }

 private:
  // Jobs that begin next and have a say in what idle lanes give up.
  static constexpr std::size_t kForeseen = 8;

  // A batch of prompts alone is given up for whoever comes in the first part of its time, so that
  // requests that come together are read together: several prompts in one batch are read faster
  // than the same beside lanes that generate (S2). What is computed twice is at most this part.
  static constexpr int kRestartPart = 16;
  // Abort checks for each look at the clock.
  static constexpr std::uint64_t kChecksPerClock = 8;

  // What one look at the queues decided; acted on without the lock.
  struct Taken {
    struct Ended {
      std::unique_ptr<Job> job;
      JobEnd end;
    };
    struct EmbedEnded {
      std::unique_ptr<EmbedJob> job;
      EmbedEnd end;
    };
    std::vector<Ended> ended;
    std::vector<EmbedEnded> embeds_ended;
    std::vector<std::unique_ptr<Job>> admitted;
    std::vector<std::unique_ptr<EmbedJob>> embeds_admitted;
  };

  // With the lock held.
  [[nodiscard]] Status check_open(std::size_t waiting) const;
  void refuse_other_purpose(Taken& taken);
  void sweep_queues(SteadyTime now, Taken& taken);
  void take_admitted(Taken& taken);

  void look_at_queues(SteadyTime now);
  void sweep_lanes(SteadyTime now);
  bool compute_batch();
  // Until when a batch that begins now, with `read` tokens of prompts, may be given up for others.
  void plan_restart(std::size_t read, SteadyTime now);
  [[nodiscard]] bool should_restart();
  void computed(SteadyTime began, SteadyTime ended);
  void give_up_batch(const std::optional<Error>& error, SteadyTime now);
  [[nodiscard]] bool should_abort();
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;
  void wait();
  void tell_changes();
  void end_all();

  LaneObserver& observer_;
  Now now_;
  std::atomic<std::uint64_t> progress_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> arrived_{false};  // a job, since the queue was looked at
  std::atomic<std::uint32_t> wanted_threads_{0};

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Job>> queue_;
  std::deque<std::unique_ptr<EmbedJob>> embed_queue_;
  std::optional<Purpose> purpose_;  // once there is an engine
  bool woken_ = false;
  bool draining_ = false;
  bool drained_ = false;
  std::uint32_t active_ = 0;

  // Context thread only.
  Engine* engine_ = nullptr;
  LaneSet lanes_;
  EmbedTurns embeds_;
  PromptSpeed speed_;
  ThreadPace pace_;
  SteadyTime batch_now_{};  // as of the latest look at the clock
  std::optional<SteadyTime> restart_until_;
  bool restarting_ = false;  // the last batch was given up for somebody who came
  Taken taken_;
  // The first jobs of the queue; only this thread takes jobs out of it.
  std::vector<const Job*> foreseen_;
  std::vector<BatchItem> batch_;
  std::uint32_t told_active_ = 0;
};

}  // namespace berth::worker
