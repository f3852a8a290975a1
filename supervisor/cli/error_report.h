#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "supervisor/cli/client/client.h"
#include "supervisor/cli/endpoint.h"

namespace berth::cli {

// What a person is told of an error, without "berth: " before the first line. Printable text only.
struct Report {
  std::string message;
  // Further lines: what stands behind it, and what to do.
  std::vector<std::string> hints;
};

// `model` is the name that was asked for; empty: none.
Report report_refusal(const v1::ErrorDetail& detail, std::string_view model, WallTime now);
Report report_unreachable(const Endpoint& endpoint, std::string_view what_happened);

// "berth: MESSAGE\n  HINT\n…", as it goes to the standard error.
std::string to_text(const Report& report, bool colours);

// "12 s ago", "3 min ago"; "just now"; for a time in the future, too.
std::string ago(std::int64_t unix_ms, WallTime now);

// The words of a command line as one can paste it into a shell.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace berth::cli
