#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/uuid.h"
#include "supervisor/catalog/model.h"
#include "supervisor/process/port.h"
#include "supervisor/program_reader.h"

namespace berth {

// How a command model is started: the counterpart of worker_command.h for kind = "command" (L27).

// Its arguments and its whole environment ("NAME=value") with the placeholders left open: what
// differs from run to run is not in them, so that they can be hashed (L19) and shown.
struct CommandTemplate {
  std::vector<std::string> argv;
  std::vector<std::string> environment;
};

// `environment`: berthd's own. PATH, HOME, the locale, directories and what configures device
// drivers are handed on; what systemd and berth say to berthd is not. The model's own variables
// come on top.
CommandTemplate command_template(const catalog::ModelSettings& settings,
                                 const std::vector<std::string>& environment);

// What of the template's environment makes one launch another (L19): all but what each login gives
// anew (XDG_RUNTIME_DIR, XDG_SESSION_ID and whatever else of XDG_… names no base directory), unless
// the model's own section sets it.
std::vector<std::string> hashed_environment(const catalog::ModelSettings& settings,
                                            const CommandTemplate& open);

// Everything that a run needs before its program is looked for and executed.
struct CommandLaunch {
  ProgramPlace place;
  std::vector<std::string> argv;
  std::vector<std::string> environment;
  std::string key;             // 256 random bits
  process::ReservedPort port;  // 0 where it listens at `socket`
  std::string socket;
};

// Chooses the port, of `ports`, and the key, and fills the placeholders in. `socket`: the path for
// a Unix socket. Touches nothing that the model names: its program is looked for by ProgramReader.
// Reads /proc: run it on the pool. Errors: kLoadFailed with what is missing.
Result<CommandLaunch> prepare_command(const catalog::ModelSettings& settings,
                                      const CommandTemplate& open, const std::string& socket,
                                      process::PortBook& ports);

}  // namespace berth
