#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "worker/engine/engine.h"
#include "worker/lanes/chunk_plan.h"
#include "worker/lanes/job.h"
#include "worker/lanes/lane.h"

namespace berth::worker {

// All lanes and the pool of cells that they share (M4). A job begins when the cells that it will
// need are not reserved by others: its prompt and max_tokens, or without max_tokens a share that
// grows with the answer. When growing lanes need more than there is, the youngest of them is parked
// until there is room, never the oldest of all lanes; no answer is ever cut for want of cells. What
// idle lanes hold is given up when it is needed.
//
// Where cells can be shared, a job takes over what any lane of its scope holds of its prompt, busy
// or idle, and waits for a prefix that another job is just reading instead of reading it as well.
// Shared cells are counted once for every lane that holds them, so what the lanes hold can only be
// less than what is counted, and the pool never overflows.
//
// Context thread only.
class LaneSet {
 public:
  void open(Engine& engine);

  [[nodiscard]] auto begin() { return lanes_.begin(); }
  [[nodiscard]] auto end() { return lanes_.end(); }
  [[nodiscard]] std::span<const Lane> all() const { return lanes_; }
  [[nodiscard]] std::size_t busy() const;
  [[nodiscard]] std::size_t idle() const { return lanes_.size() - busy(); }

  // Whether somebody who began already waits for cells: nobody else may begin.
  [[nodiscard]] bool someone_parked() const;
  [[nodiscard]] std::size_t free_cells() const;
  [[nodiscard]] std::size_t cells_for(const Job& job) const;

  // Puts a job on the idle lane that suits it best. There must be one, and the cells.
  void start(std::unique_ptr<Job> job, SteadyTime now);
  // Keeps what is reserved within the pool: parks the youngest, or lets parked lanes go on.
  // `waiting`: the jobs that will begin next; what they can use of idle lanes is given up last.
  void balance(std::span<const Job* const> waiting);
  // Gives up what idle lanes hold, the longest unused first, until the rest fits into the pool.
  void make_room(std::span<const Job* const> waiting);

  // The next batch (S2): one token of each lane that generates and what a draft proposes, then as
  // much of the prompts as `speed` allows beside them. Where nobody generates, nor is about to, as
  // much as a batch holds. What a draft model reads of prompts takes its time from the same 100 ms,
  // at most half of them where prompts wait.
  // Returns how many of its tokens are read from prompts.
  std::size_t fill(std::vector<BatchItem>& batch, const PromptSpeed& speed,
                   const std::function<SteadyTime()>& now);

 private:
  // Whom a lane waits for that has to read the same tokens.
  struct Leader {
    const Lane* lane = nullptr;
    std::uint64_t order = 0;  // of its job
    std::size_t prefix = 0;   // tokens that both have
  };

  // The idle lane that gains most; `source` is what can be copied, null where nothing can.
  Lane& place_for(const Job& job, const Lane* source);
  Lane* longest_holder(const Job& job, bool idle_only);
  [[nodiscard]] Leader leader_for(const Job& job, std::size_t already) const;
  // Whether it has to wait; takes over what its leader has read.
  bool follows(Lane& lane);
  [[nodiscard]] std::size_t index_of(const Lane& lane) const;
  // Returns the part of a chunk's time that draft models took to read; 0 to 1.
  double fill_generating(std::vector<BatchItem>& batch, std::size_t room,
                         const std::function<SteadyTime()>& now);
  [[nodiscard]] std::size_t reserved() const;  // by lanes that are busy and not parked
  // The youngest of those that grow, never the oldest of all; null where there is only one.
  Lane* next_to_park();
  Lane* oldest_parked();  // null where there is none

  Engine* engine_ = nullptr;
  std::vector<Lane> lanes_;
  std::vector<Leader> leaders_;  // one per lane
  std::uint64_t begun_ = 0;      // jobs so far
  std::size_t growth_ = 1;       // cells that an answer without max_tokens begins with and grows by
  std::uint64_t turns_ = 0;      // of the lanes that draft
  PromptSpeed draft_speed_;      // at which the draft model reads
  // Scratch.
  std::vector<Lane*> generating_;
  std::vector<Lane*> reading_;
  std::vector<PromptShare> shares_;
};

}  // namespace berth::worker
