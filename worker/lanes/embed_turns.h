#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/engine/engine.h"
#include "worker/lanes/job.h"

namespace berth::worker {

// The embedding jobs that have begun. Inputs are computed in groups that fit into a batch; after
// each group the job whose inputs did not all have a place goes behind the others, so that one of
// thousands of inputs holds up a single one for a group, not for its whole length. What one job
// leaves of a group is filled by the next. Where a group of several jobs fails, or gives one of
// them no usable embedding, each is computed alone once, so that only its owner suffers from an
// input. Context thread only; whoever owns it bounds the jobs.
class EmbedTurns {
 public:
  void open(Engine& engine) { engine_ = &engine; }

  // Begins a job, or ends it where an input is empty or too long.
  void add(std::unique_ptr<EmbedJob> job, SteadyTime now);
  // Ends what is cancelled or late.
  void sweep(SteadyTime now);
  [[nodiscard]] std::size_t active() const { return turns_.size(); }
  // Computes one group; false: there is nothing to do. Deadlines are looked at by `now`, after it.
  bool compute(const std::function<SteadyTime()>& now);
  // Whether nobody wants the present group any more. Asked within it.
  [[nodiscard]] bool all_given_up(SteadyTime now) const;
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;
  void end_all(const Error& error);

 private:
  struct Turn {
    std::unique_ptr<EmbedJob> job;
    EmbedResult result;  // of the inputs so far
    std::size_t in_group = 0;
    bool alone = false;  // its next group is its own
  };
  using Turns = std::deque<Turn>;

  void make_group();
  void take_vectors();
  // Ends the group's only job, or lets each of several try again alone.
  void fail_group(const Error& error);
  static void end(Turn& turn, EmbedEnd end);

  Engine* engine_ = nullptr;
  Turns turns_;
  std::vector<std::vector<TokenId>> group_;
  std::vector<std::vector<float>> vectors_;
};

}  // namespace berth::worker
