#include "worker/lanes/job.h"

namespace berth::worker {
namespace {

template <typename End>
std::optional<End> early_end(bool cancelled, const std::optional<SteadyTime>& deadline,
                             SteadyTime now) {
  if (cancelled) return JobCancelled{};
  if (!deadline || now < *deadline) return std::nullopt;
  return Error(Reason::kDeadline, "The request's deadline passed before its answer was complete.");
}

}  // namespace

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
