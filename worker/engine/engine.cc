#include "worker/engine/engine.h"

#include "worker/engine/load_log.h"

namespace berth::worker {

tl::expected<void, LoadFailure> Engine::do_within_load(const std::function<Status()>& work) {
  if (const auto done = work(); !done) {
    LoadLog silent([](std::string_view /*name*/) { return false; });
    return tl::unexpected(failure_within_load(silent, done.error().message));
  }
  return {};
}

}  // namespace berth::worker
