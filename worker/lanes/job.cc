#include "worker/lanes/job.h"

namespace berth::worker {

std::optional<JobEnd> reason_to_end(const JobSink& sink, const std::optional<SteadyTime>& deadline,
                                    SteadyTime now) {
  return early_end<JobEnd>(sink.cancelled(), deadline, now);
}

std::optional<EmbedEnd> reason_to_end(const EmbedJob& job, SteadyTime now) {
  return early_end<EmbedEnd>(job.sink->cancelled(), job.deadline, now);
}

Error shutting_down() {
  return {Reason::kShuttingDown, "The worker is being stopped; ask again."};
}

}  // namespace berth::worker
