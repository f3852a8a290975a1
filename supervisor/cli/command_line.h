#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/manual/command.h"
#include "common/manual/man_page.h"
#include "supervisor/cli/context.h"
#include "supervisor/cli/options.h"

namespace berth::cli {

// What a command line asks for.
struct Invocation {
  enum class Kind {
    kVerb,   // `verb` is to be run
    kPrint,  // `text` goes to the standard output
    kUsage,  // it is wrong: `text`, and `hints` where to read on
  };
  Kind kind = Kind::kUsage;
  CommonOptions common;
  // The verb talks to the daemon and cannot do without an endpoint.
  bool needs_endpoint = true;
  std::function<ExitCode(Context&)> verb;
  std::string text;
  std::vector<std::string> hints;
};

// Reads a command line (without the program's name).
Invocation parse_command_line(const std::vector<std::string>& arguments);

// The same command line as its manual, and what its pages say besides.
manual::Command command_manual();
manual::ManPage man_page_texts();

}  // namespace berth::cli
