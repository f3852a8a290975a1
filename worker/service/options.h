#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/result.h"
#include "worker/engine/engine.h"

namespace berth::worker {

// The command line of berth-worker.
struct Options {
  enum class Action : std::uint8_t {
    kServe,
    kVersion,
    kDevices,
    kArchitecture,
    kSandboxReport,
    kHelp
  };
  Action action = Action::kServe;
  EngineSettings engine;
  std::string socket;
  std::string chat_template;     // a file, or a built-in template's name; empty: the model's own
  std::string template_program;  // path of berth-template; empty: beside this program
  std::string instance;          // empty: not checked
  int notify_fd = -1;
  bool parent_stdin = false;
  bool prove_micro_batch = false;  // before it is ready
  bool sandbox = true;
  std::string architecture;  // that is asked about
};

// `arguments` without the program's name. Values are taken as `--name VALUE` or `--name=VALUE`.
// Errors: kInvalidArgument, names the option and what was expected.
Result<Options> parse_options(std::span<const char* const> arguments);

std::string_view help_text();

}  // namespace berth::worker
