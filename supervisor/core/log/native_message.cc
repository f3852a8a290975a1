#include "supervisor/core/log/native_message.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "supervisor/core/log/ascii.h"
#include "supervisor/core/log/line_cleaner.h"

namespace berth::core {
namespace {

// Functions of llama.cpp's programs whose names could be words of a sentence. Others hold an
// underscore: "note: failed to …" is prose.
constexpr std::array<std::string_view, 10> kPlainFunctions = {
    "main", "load", "init", "start", "run", "server", "reserve", "decode", "encode", "operator()"};

bool is_function(std::string_view name) {
  if (name.empty() || is_digit(name.front())) return false;
  const bool characters = std::ranges::all_of(name, [](char c) {
    return is_word_character(c) || c == ':' || c == '~' || c == '(' || c == ')';
  });
  if (!characters) return false;
  return contains(name, "_") || std::ranges::find(kPlainFunctions, name) != kPlainFunctions.end();
}

// Whether the text is about a port, a socket or an address, also "127.0.0.1:8080".
bool names_socket(std::string_view text) {
  if (contains_ignoring_case(text, "address") || contains_ignoring_case(text, "socket") ||
      contains_ignoring_case(text, "already in use")) {
    return true;
  }
  for (std::size_t at = text.find(':'); at != std::string_view::npos; at = text.find(':', at + 1)) {
    if (at + 1 < text.size() && is_digit(text[at + 1])) return true;
  }
  constexpr std::string_view kPort = "port";
  for (std::size_t at = text.find(kPort); at != std::string_view::npos;
       at = text.find(kPort, at + 1)) {
    const std::size_t end = at + kPort.size();
    const bool begins = at == 0 || !is_letter(text[at - 1]);
    if (begins && (end == text.size() || !is_letter(text[end]))) return true;
  }
  return false;
}

// "1234.50 MiB", "1234 bytes"
bool begins_with_size(std::string_view text) {
  text = without_leading_blanks(text);
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  if (digits == 0) return false;
  text = without_leading_blanks(text.substr(digits));
  constexpr std::array<std::string_view, 8> kUnits = {"bytes", "Bytes", "KB",  "MB",
                                                      "GB",    "KiB",   "MiB", "GiB"};
  return std::ranges::any_of(kUnits,
                             [text](std::string_view unit) { return text.starts_with(unit); });
}

// "CUDA0 buffer of size 1", "buffer for kv cache", "compute pp buffers"
bool begins_with_buffer(std::string_view text) {
  constexpr int kMostWords = 4;
  for (int i = 0; i < kMostWords && !text.empty(); ++i) {
    const std::string_view word = text.substr(0, std::min(text.find(' '), text.size()));
    std::string_view name = word;
    while (name.ends_with(',') || name.ends_with(':') || name.ends_with('.')) name.remove_suffix(1);
    if (name == "buffer" || name == "buffers") return true;
    text.remove_prefix(word.size());
    text = without_leading_blanks(text);
  }
  return false;
}

}  // namespace

NativeMessage split_native_message(std::string_view message) {
  std::string_view rest = message;
  if (drop(rest, "srv ") || drop(rest, "slot ") || drop(rest, "cmn ")) {
    rest = without_leading_blanks(rest);
  }
  // No function's name is longer; what lies behind is not searched.
  constexpr std::size_t kLongestName = 96;
  const std::size_t blank = rest.substr(0, kLongestName).find(' ');
  if (blank == std::string_view::npos || blank < 2 || rest[blank - 1] != ':') return {{}, message};
  const std::string_view function = rest.substr(0, blank - 1);
  if (!is_function(function)) return {{}, message};
  return {function, without_leading_blanks(rest.substr(blank))};
}

namespace {

// The begin of a failed allocation, whatever stands behind it.
bool tells_of_failed_allocation(const NativeMessage& message) {
  std::string_view text = message.text;
  if (message.function == "ggml_vulkan") {
    if (text.starts_with("Device memory allocation of size") ||
        text.starts_with("Memory allocation of size") || contains(text, "ErrorOutOfDeviceMemory") ||
        contains(text, "ErrorOutOfHostMemory")) {
      return true;
    }
  }
  drop(text, "error: ");
  drop(text, "failed to initialize the context: ");
  if (drop(text, "failed to allocate ") || drop(text, "Failed to allocate ") ||
      drop(text, "unable to allocate ")) {
    return begins_with_buffer(text) || begins_with_size(text);
  }
  if (text.starts_with("insufficient memory")) return true;
  if (text.starts_with("allocating ")) return contains(text, "Malloc failed");
  if (text.starts_with("can't allocate ")) return contains(text, "memory on device");
  // cudaMalloc, hipMalloc, musaMalloc
  const std::string_view word = text.substr(0, text.find(' '));
  return word.ends_with("Malloc") && text.substr(word.size()).starts_with(" failed");
}

}  // namespace

bool is_failed_allocation(const NativeMessage& message) {
  if (!tells_of_failed_allocation(message)) return false;
  // Pinned memory, locked memory and the buffers of asynchronous uploads have a fallback.
  const std::string_view text = message.text;
  return !contains(text, "pinned") && !contains(text, "mlock") && !contains(text, "async upload") &&
         !contains_ignoring_case(text, "retrying");
}

std::optional<FailureClass> class_of_runtime_error(const NativeMessage& message,
                                                   std::string_view whole) {
  if (whole.starts_with("terminate called")) {
    const bool memory = contains(whole, "'std::bad_alloc'") ||
                        contains(whole, "'vk::OutOfDeviceMemoryError'") ||
                        contains(whole, "'vk::OutOfHostMemoryError'") ||
                        contains(whole, "'vk::OutOfPoolMemoryError'");
    return memory ? FailureClass::kResource : FailureClass::kCrash;
  }
  std::string_view text = message.text;
  if (!begins_with_any_of(text, "CRHM")) return std::nullopt;
  constexpr std::array<std::string_view, 4> kDevices = {"CUDA", "ROCm", "HIP", "MUSA"};
  if (!std::ranges::any_of(kDevices, [&text](std::string_view name) { return drop(text, name); })) {
    return std::nullopt;
  }
  if (!drop(text, " error")) return std::nullopt;
  if (drop(text, ": ")) {
    return text.starts_with("out of memory") ? FailureClass::kResource : FailureClass::kCrash;
  }
  // The form of old versions: "CUDA error 2 at FILE:LINE: out of memory"
  if (text.size() < 2 || text.front() != ' ' || !is_digit(text[1]) || !contains(text, " at ")) {
    return std::nullopt;
  }
  return text.ends_with(": out of memory") ? FailureClass::kResource : FailureClass::kCrash;
}

namespace {

// "Port 8080 is already in use." and nothing about another one
bool is_taken_port(std::string_view text) {
  if (!drop(text, "Port ") && !drop(text, "port ")) return false;
  text.remove_prefix(std::min(text.find_first_not_of("0123456789"), text.size()));
  if (!drop(text, " is already in use") && !drop(text, " is in use")) return false;
  return text.empty() || text == "." || text == "!" || text.starts_with(" by another program");
}

bool tells_of_failed_bind(std::string_view text) {
  if (!begins_with_any_of(text, "AaeCcUuFfbPp")) return false;
  if (is_taken_port(text)) return true;
  constexpr std::string_view kAttempt = "error while attempting to bind on address";
  if (text.substr(1).starts_with("ddress already in use") || text.starts_with(kAttempt)) {
    return true;
  }
  constexpr std::array<std::string_view, 6> kBegins = {
      "ouldn't bind", "ould not bind", "annot bind", "an't bind", "nable to bind", "ailed to bind"};
  const bool begins =
      std::ranges::any_of(kBegins, [behind_first = text.substr(1)](std::string_view begin) {
        return behind_first.starts_with(begin);
      });
  if (begins) return names_socket(text);
  if (!drop(text, "bind")) return false;
  drop(text, "()");
  return (drop(text, ": ") || drop(text, " failed")) &&
         (names_socket(text) || contains_ignoring_case(text, "permission denied"));
}

}  // namespace

bool is_failed_bind(const NativeMessage& message) {
  // One that tries again goes on with another port, or later.
  return tells_of_failed_bind(message.text) && !contains_ignoring_case(message.text, "trying");
}

}  // namespace berth::core
