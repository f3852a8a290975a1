#pragma once

#include <string>
#include <string_view>

#include "common/manual/command.h"

namespace berth::manual {

// Scripts that complete the command line in a shell. An argument MODEL is completed by the names
// that the command `list_models` prints, one a line; a value FILE by files.
std::string bash_completion(const Command& command, std::string_view list_models);
std::string zsh_completion(const Command& command, std::string_view list_models);
std::string fish_completion(const Command& command, std::string_view list_models);

}  // namespace berth::manual
