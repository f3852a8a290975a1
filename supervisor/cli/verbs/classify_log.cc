#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>

#include "common/errno_text.h"
#include "common/fd.h"
#include "common/text.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/core/log/log_verdict.h"

namespace berth::cli {
namespace {

constexpr std::size_t kLongestName = 256;

struct Classified {
  std::optional<core::LogVerdict> verdict;
  int error = 0;  // errno, where the log could not be read to its verdict or its end
};

// Reads the log as that of a process that has ended. Its pauses are gone, so the clock stands
// still.
Classified classify(int fd, const ClassifyLogOptions& options) {
  core::LogParser parser(options.fatal.empty() ? core::default_fatal_exceptions() : options.fatal);
  std::array<char, 65536> buffer{};
  Classified result;
  while (!result.verdict) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) result.error = errno;
    if (count <= 0) break;
    result.verdict = parser.feed({buffer.data(), static_cast<std::size_t>(count)}, SteadyTime{});
  }
  if (!result.verdict && result.error == 0) result.verdict = parser.end();
  return result;
}

std::string to_json(const std::optional<core::LogVerdict>& verdict) {
  JsonWriter json(JsonWriter::Layout::kIndented);
  json.begin_object();
  json.key("verdict");
  if (verdict) {
    json.begin_object();
    json.member("class", core::failure_class_name(verdict->failure_class));
    json.key("exception");
    if (verdict->exception.empty()) {
      json.null();
    } else {
      json.text(verdict->exception);
    }
    json.member("reason", verdict->reason);
    json.key("line");
    json.unsigned_integer(verdict->line);
    json.end_object();
  } else {
    json.null();
  }
  json.end_object();
  return json.str();
}

std::string to_text(const std::optional<core::LogVerdict>& verdict) {
  if (!verdict) return "no verdict\n";
  std::string text = "class:     " + std::string(failure_class_name(verdict->failure_class)) + "\n";
  if (!verdict->exception.empty()) {
    text += "exception: " + printable_line(verdict->exception, kLongestName) + "\n";
  }
  return text + "reason:    " + verdict->reason + "\nline:      " + std::to_string(verdict->line) +
         "\n";
}

}  // namespace

ExitCode run_classify_log(Context& context, const ClassifyLogOptions& options) {
  const bool standard_input = options.file.empty() || options.file == "-";
  UniqueFd file;
  if (!standard_input) file.reset(::open(options.file.c_str(), O_RDONLY | O_CLOEXEC));
  Classified result;
  if (!standard_input && !file) {
    result.error = errno;
  } else {
    result = classify(standard_input ? context.environment().input : file.get(), options);
  }
  if (result.error != 0) {
    const std::string what = standard_input ? "the standard input" : options.file;
    return context.refuse("cannot read " + what + ": " + errno_text(result.error));
  }
  if (context.json()) {
    context.print_json(to_json(result.verdict));
  } else {
    context.print(to_text(result.verdict));
  }
  return ExitCode::kOk;
}

}  // namespace berth::cli
