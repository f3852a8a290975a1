#include "supervisor/process/oom_kill_count.h"

#include <csignal>
#include <variant>

namespace berth::process {

void OomKillCount::sample(std::uint64_t count) {
  counts_.at(next_) = count;
  next_ = (next_ + 1) % counts_.size();
}

bool OomKillCount::explains(const core::ExitStatus& exit, std::uint64_t at_exit) const {
  const auto* const signalled = std::get_if<core::Signalled>(&exit);
  const bool killed = signalled != nullptr && signalled->signal == SIGKILL;
  // The newest sample may be of between the kill and the exit.
  const std::size_t back = 1 + (killed ? kSamplesAfterSigkill : kSamples);
  return at_exit > counts_.at((next_ + counts_.size() - back) % counts_.size());
}

}  // namespace berth::process
