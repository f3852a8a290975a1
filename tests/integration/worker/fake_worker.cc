// berth-worker with an engine without a model: the same service, lanes and life.

#include <fcntl.h>

#include <chrono>
#include <memory>
#include <span>
#include <utility>

#include "common/fd.h"
#include "tests/unit/worker/fake_engine.h"
#include "worker/lanes/lane_runner.h"
#include "worker/service/options.h"
#include "worker/service/process_limits.h"
#include "worker/service/serve.h"

namespace berth::worker {
namespace {

// As fast as a small model, so that a generation can be met in its middle.
constexpr auto kBatchTime = std::chrono::microseconds(500);

// Opens the model's file as libllama does: that waits where the file is a FIFO.
tl::expected<std::unique_ptr<Engine>, LoadFailure> load_fake_engine(const EngineSettings& settings,
                                                                    LoadObserver& observer) {
  observer.on_progress(LoadProgress{"starting"});
  const UniqueFd file(::open(settings.model_path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return tl::unexpected(LoadFailure{"unclassified", "No such file"});
  for (int step = 0; step <= 10; ++step) {
    observer.on_progress(LoadProgress{"weights", static_cast<float>(step) / 10});
  }
  auto engine = std::make_unique<FakeEngine>(settings.sequences, settings.context);
  engine->mutable_facts().chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}";
  engine->never_ends = true;
  engine->on_decode = [] {  // computes, so to speak
    for (const auto end = steady_now() + kBatchTime; steady_now() < end;) {
    }
  };
  observer.on_vocabulary(*engine);
  observer.on_progress(LoadProgress{"context"});
  return engine;
}

}  // namespace
}  // namespace berth::worker

int main(int argc, char** argv) {
  const std::span<const char* const> arguments(argv, static_cast<std::size_t>(argc));
  auto options = berth::worker::parse_options(arguments.subspan(1));
  if (!options) {
    return berth::worker::complain(options.error().message, berth::worker::kExitUsage);
  }
  berth::worker::limit_own_process();
  return berth::worker::serve(std::move(*options), &berth::worker::load_fake_engine);
}
