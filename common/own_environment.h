#pragma once

#include <unistd.h>

#include <string>
#include <vector>

namespace berth {

// The environment of this process ("NAME=value"), as long as nobody changes it.
inline std::vector<std::string> own_environment() {
  std::vector<std::string> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    variables.emplace_back(*variable);
  }
  return variables;
}

}  // namespace berth
