#include "supervisor/process_tree_sampler.h"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "supervisor/process/process_tree.h"

namespace berth {

// The pool's, while an answer is out: one question at a time. `done` is the core strand's.
struct ProcessTreeSampler::Shared {
  process::ProcessTree tree;
  UniqueFd log;
  std::function<void(std::optional<core::TreeSample>)> done;

  std::optional<core::TreeSample> look() {
    const std::optional<process::TreeUse> use = tree.sample();
    if (!use) return std::nullopt;
    core::TreeSample sample;
    sample.storage_bytes = use->storage_bytes;
    sample.read_bytes = use->read_bytes;
    sample.cpu_time = use->cpu_time;
    sample.resident_bytes = use->resident_bytes;
    struct stat status {};
    if (log && ::fstat(log.get(), &status) == 0) {
      sample.log_bytes = static_cast<std::uint64_t>(status.st_size);
    }
    return sample;
  }
};

ProcessTreeSampler::ProcessTreeSampler(Clock& clock, process::RunBlocking run_blocking, pid_t pid,
                                       std::uint64_t start_ticks, UniqueFd log)
    : clock_(clock),
      run_blocking_(std::move(run_blocking)),
      shared_(std::make_shared<Shared>(
          Shared{process::ProcessTree(pid, start_ticks, ::getpid()), std::move(log), {}})) {}

ProcessTreeSampler::~ProcessTreeSampler() {
  shared_->done = nullptr;
}

void ProcessTreeSampler::sample(std::function<void(std::optional<core::TreeSample>)> done) {
  shared_->done = std::move(done);
  run_blocking_([&clock = clock_, shared = shared_] {
    clock.post([shared, seen = shared->look()] {
      if (const auto asked = std::exchange(shared->done, nullptr)) asked(seen);
    });
  });
}

}  // namespace berth
