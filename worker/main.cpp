// berth-worker: one model, served to berthd. Wiring only.

#include <unistd.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "worker/engine/llama_architectures.h"
#include "worker/engine/llama_devices.h"
#include "worker/engine/llama_load.h"
#include "worker/engine/llama_templates.h"
#include "worker/lanes/run_delay.h"
#include "worker/sandbox/sandbox.h"
#include "worker/service/options.h"
#include "worker/service/process_limits.h"
#include "worker/service/serve.h"

namespace {

void print(std::string_view text) {
  while (!text.empty()) {
    const auto size = ::write(STDOUT_FILENO, text.data(), text.size());
    if (size <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
}

}  // namespace

int main(int argc, char** argv) {
  namespace worker = berth::worker;
  const std::span<const char* const> arguments(argv, static_cast<std::size_t>(argc));
  auto options = worker::parse_options(arguments.subspan(1));
  if (!options) return worker::complain(options.error().message, worker::kExitUsage);
  const bool serves = options->action == worker::Options::Action::kServe;
  if (serves && !worker::run_delay_reader()()) worker::restart_with_short_spin(argv);
  worker::limit_own_process();
  switch (options->action) {
    case worker::Options::Action::kHelp:
      print(worker::help_text());
      return 0;
    case worker::Options::Action::kVersion:
      print("berth-worker " BERTH_VERSION ", " + worker::llama_build_id() + "\n");
      return 0;
    case worker::Options::Action::kDevices:
      print(worker::llama_devices_json());
      return 0;
    case worker::Options::Action::kArchitecture:
      print("architecture " + options->architecture + ": " +
            (worker::llama_knows_architecture(options->architecture) ? "known\n" : "unknown\n"));
      return 0;
    case worker::Options::Action::kSandboxReport:
      print(worker::probe_sandbox().json());
      return 0;
    case worker::Options::Action::kServe:
      return worker::serve(std::move(*options), &worker::load_llama_engine,
                           worker::llama_builtin_templates());
  }
}
