#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "common/fd.h"
#include "supervisor/core/stall.h"

namespace berth::residency {

// Looks at the process tree of one child. Core strand only; dropping it drops the answer that is
// still out.
class TreeSampler {
 public:
  TreeSampler() = default;
  TreeSampler(const TreeSampler&) = delete;
  TreeSampler& operator=(const TreeSampler&) = delete;
  virtual ~TreeSampler() = default;

  // Calls back on the core strand, never from within this call. Nothing: there was nothing to see.
  // Of the sample all but the progress is filled in. One question at a time.
  virtual void sample(std::function<void(std::optional<core::TreeSample>)> done) = 0;
};

// Makes one for a child: its number, its start in clock ticks, and its log (may be invalid).
using WatchTree =
    std::function<std::unique_ptr<TreeSampler>(pid_t pid, std::uint64_t start_ticks, UniqueFd log)>;

}  // namespace berth::residency
