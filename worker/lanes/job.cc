#include "worker/lanes/job.h"

namespace berth::worker {

std::optional<JobEnd> reason_to_end(const JobSink& sink, const std::optional<SteadyTime>& deadline,
                                    SteadyTime now) {
  if (sink.cancelled()) return JobCancelled{};
  if (!deadline || now < *deadline) return std::nullopt;
  return Error(Reason::kDeadline, "The request's deadline passed before its answer was complete.");
}

Error shutting_down() {
  return {Reason::kShuttingDown, "The worker is being stopped; ask again."};
}

}  // namespace berth::worker
