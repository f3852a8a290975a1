#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "common/own_environment.h"

namespace berth::cli {

// What a program did.
struct Ran {
  bool started = false;
  bool timed_out = false;  // and was killed
  // As waitpid() gives it; where it was started and did not time out.
  int status = 0;
  std::string output;  // standard output and error together, at most 16 KiB
  std::string error;   // why it could not be started
};

// Runs a program with an empty standard input and waits for its end, at most `deadline`.
// `environment`: "NAME=value" each.
Ran run_program(const std::vector<std::string>& arguments, std::chrono::milliseconds deadline,
                const std::vector<std::string>& environment = own_environment());

}  // namespace berth::cli
