#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "common/clock.h"
#include "common/fd.h"
#include "supervisor/process/async.h"
#include "supervisor/residency/tree_sampler.h"

namespace berth {

// The process trees of this machine, looked at on the pool, so that a slow /proc never holds up the
// core strand. Core strand; what is out is dropped with it.
class ProcessTreeSampler final : public residency::TreeSampler {
 public:
  // `log`: the child's own log file; may be invalid. Clock and pool outlive every answer.
  ProcessTreeSampler(Clock& clock, process::RunBlocking run_blocking, pid_t pid,
                     std::uint64_t start_ticks, UniqueFd log);
  ProcessTreeSampler(const ProcessTreeSampler&) = delete;
  ProcessTreeSampler& operator=(const ProcessTreeSampler&) = delete;
  ~ProcessTreeSampler() override;

  void sample(std::function<void(std::optional<core::TreeSample>)> done) override;

 private:
  struct Shared;

  Clock& clock_;
  const process::RunBlocking run_blocking_;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace berth
