#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "supervisor/core/exit_status.h"

namespace berth::process {

// Whether the count of a cgroup's oom kills (memory.events) rose so shortly before an exit that it
// explains it: a helper of a worker may be killed so on its first day, and the worker live on. A
// value; pure. Keeps the counts of the last two minutes.
class OomKillCount {
 public:
  // How far apart the samples are meant to be.
  static constexpr std::chrono::seconds kInterval{10};
  // An exit other than by SIGKILL is what a program does when its child was killed: soon. One that
  // the kernel kills itself may take long to go, as its memory, a device's too, is given back
  // first.
  static constexpr std::size_t kSamplesAfterSigkill = 12;
  static constexpr std::size_t kSamples = 1;

  // The count at this moment; of a new cgroup it is 0. Every kInterval as long as the worker lives.
  void sample(std::uint64_t count);
  // Whether the count `at_exit` is higher than it was 10 to 20 s before the exit; for a SIGKILL,
  // 120 to 130 s.
  [[nodiscard]] bool explains(const core::ExitStatus& exit, std::uint64_t at_exit) const;

 private:
  // The newest at next_ - 1; what was not sampled yet is the new cgroup's 0.
  std::array<std::uint64_t, kSamplesAfterSigkill + 1> counts_{};
  std::size_t next_ = 0;
};

}  // namespace berth::process
