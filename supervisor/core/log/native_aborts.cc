// Reports of a program's own violent end (D15): of assertions, glibc, sanitizers, shells, CPython
// and the dynamic linker.

#include <algorithm>
#include <array>
#include <cstddef>

#include "supervisor/core/log/ascii.h"
#include "supervisor/core/log/line_cleaner.h"
#include "supervisor/core/log/native_message.h"

namespace berth::core {
namespace {

// Drops digits; false where there are none.
bool drop_digits(std::string_view& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(digits);
  return digits > 0;
}

// "FILE:LINE: " at the front, dropped. FILE is one word, or an absolute path.
bool drop_place(std::string_view& text) {
  const std::size_t end = text.find(": ");
  if (end == std::string_view::npos) return false;
  const std::string_view place = text.substr(0, end);
  const std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == place.size()) return false;
  if (!std::all_of(place.begin() + static_cast<std::ptrdiff_t>(colon) + 1, place.end(), is_digit)) {
    return false;
  }
  if (contains(place, " ") && place.front() != '/') return false;
  text.remove_prefix(end + 2);
  return true;
}

// A program's or a script's name: one word or an absolute path, and no name of an exception.
bool is_program(std::string_view name) {
  if (name.empty() || name.front() == '"' || name.front() == '{') return false;
  if (name.ends_with("Error") || name.ends_with("Exception")) return false;
  return !contains(name, " ") || (name.front() == '/' && !contains(name, ": "));
}

// "GGML_ASSERT(expr) failed" and the older "GGML_ASSERT: FILE:LINE: expr"
bool is_ggml_assertion(std::string_view message) {
  drop_place(message);
  if (!drop(message, "GGML_ASSERT")) return false;
  if (message.starts_with('(')) return message.ends_with(") failed");
  return message.starts_with(": ");
}

// "PROGRAM: FILE:LINE: FUNCTION: Assertion `expr' failed."; each of the parts may be missing.
// libstdc++ quotes with two straight marks.
bool is_glibc_assertion(std::string_view message) {
  if (!message.ends_with("' failed.")) return false;
  constexpr std::string_view kAssertion = "Assertion ";
  std::size_t at = 0;
  if (!message.starts_with(kAssertion)) {
    at = message.find(": Assertion ");
    if (at == std::string_view::npos) return false;
    at += 2;
  }
  const std::string_view expression = message.substr(at + kAssertion.size());
  if (!begins_with_any_of(expression, "`'")) return false;
  std::string_view place = message.substr(0, at);
  if (place.empty() || drop_place(place)) return true;
  const std::size_t program = place.find(": ");
  if (!is_program(place.substr(0, program))) return false;
  place.remove_prefix(program + 2);
  return drop_place(place);
}

// The heap's and the stack's guards print one of these and abort.
bool is_glibc_abort(std::string_view message) {
  if (!begins_with_any_of(message, "fmrtdcbFI*")) return false;
  constexpr std::array<std::string_view, 14> kBegins = {
      "free(): ",
      "malloc(): ",
      "realloc(): ",
      "munmap_chunk(): ",
      "mremap_chunk(): ",
      "malloc_consolidate(): ",
      "tcache_thread_shutdown(): ",
      "double free or corruption",
      "corrupted size vs. prev_size",
      "corrupted double-linked list",
      "break adjusted to free malloc space",
      "Fatal glibc error: ",
      "Inconsistency detected by ld.so: ",
      "*** glibc detected ***",
  };
  const bool begins = std::ranges::any_of(
      kBegins, [message](std::string_view begin) { return message.starts_with(begin); });
  if (begins) return true;
  if (!message.starts_with("*** ")) return false;
  return message.ends_with(" ***: terminated") || message.ends_with(" ***: aborted") ||
         (message.starts_with("*** Error in `") && contains(message, "': "));
}

// "==PID==ERROR: AddressSanitizer: …". Warnings and what UBSan only reports have other forms.
bool is_sanitizer_error(std::string_view message) {
  if (!begins_with_any_of(message, "=EF")) return false;
  if (drop(message, "==") && !(drop_digits(message) && drop(message, "=="))) return false;
  if (!drop(message, "ERROR: ") && !drop(message, "FATAL: ")) return false;
  const std::size_t name = std::min(message.find_first_of(": "), message.size());
  return message.substr(0, name).ends_with("Sanitizer");
}

// What the shells call the signals by which a program ends itself. Killed and Terminated are the
// work of somebody else, and no fault of the program.
bool drop_signal(std::string_view& text) {
  constexpr std::array<std::string_view, 7> kSignals = {"Segmentation fault",
                                                        "Aborted",
                                                        "Bus error",
                                                        "Illegal instruction",
                                                        "Floating point exception",
                                                        "Trace/breakpoint trap",
                                                        "Bad system call"};
  return std::ranges::any_of(kSignals, [&text](std::string_view name) { return drop(text, name); });
}

// "Segmentation fault (core dumped)"
bool is_bare_signal(std::string_view message) {
  if (!drop_signal(message)) return false;
  message = without_leading_blanks(message);
  return message.empty() || message == "(core dumped)";
}

// "SCRIPT: line N: PID Segmentation fault      (core dumped) COMMAND", of `bash -c` also without
// the line.
bool is_signal_in_script(std::string_view message) {
  const std::size_t end = message.find(": ");
  if (end == std::string_view::npos || !is_program(message.substr(0, end))) return false;
  std::string_view rest = message.substr(end + 2);
  if (drop(rest, "line ") && !(drop_digits(rest) && drop(rest, ":"))) return false;
  rest = without_leading_blanks(rest);
  if (!drop_digits(rest) || !drop(rest, " ")) return false;
  rest = without_leading_blanks(rest);
  return drop_signal(rest) && (rest.empty() || is_blank(rest.front()));
}

// "PROGRAM: error while loading shared libraries: …": the program does not run. What dlopen
// reports has another form.
bool is_linker_error(std::string_view message) {
  const std::size_t end = message.find(": ");
  if (end == std::string_view::npos || !is_program(message.substr(0, end))) return false;
  std::string_view text = message.substr(end + 2);
  if (text.starts_with("error while loading shared libraries: ") ||
      text.starts_with("symbol lookup error: ") || text.starts_with("relocation error: ")) {
    return true;
  }
  const std::size_t library = text.find(": version `");
  return text.starts_with('/') && library != std::string_view::npos &&
         !contains(text.substr(0, library), " ") && contains(text, "' not found (required by ");
}

}  // namespace

bool is_worker_refusal(std::string_view message) {
  return message.starts_with("berth-worker: cannot start: ");
}

bool is_worker_shortage(std::string_view message) {
  return message.starts_with("berth-worker: cannot start now: ");
}

bool is_abort(std::string_view message) {
  if (begins_with_any_of(message, "SABITF") && is_bare_signal(message)) return true;
  if (is_glibc_abort(message) || is_sanitizer_error(message)) return true;
  if (message.starts_with("GGML_ASSERT")) return is_ggml_assertion(message);
  // All others hold a colon.
  if (!contains(message, ":")) return false;
  return message.starts_with("Fatal Python error: ") || is_ggml_assertion(message) ||
         is_linker_error(message) || is_signal_in_script(message) || is_glibc_assertion(message);
}

}  // namespace berth::core
