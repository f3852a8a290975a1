// berth-worker with an engine without a model: the same service, lanes and life.
// Its model file says what it does, where it has settings (tests/fake_engine/fake_settings.h).

#include <span>
#include <utility>

#include "tests/fake_engine/fake_load.h"
#include "worker/service/options.h"
#include "worker/service/process_limits.h"
#include "worker/service/serve.h"

int main(int argc, char** argv) {
  const std::span<const char* const> arguments(argv, static_cast<std::size_t>(argc));
  auto options = berth::worker::parse_options(arguments.subspan(1));
  if (!options) {
    return berth::worker::complain(options.error().message, berth::worker::kExitUsage);
  }
  berth::worker::limit_own_process();
  return berth::worker::serve(std::move(*options), &berth::worker::load_fake_engine);
}
