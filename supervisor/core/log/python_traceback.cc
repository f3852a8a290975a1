#include "supervisor/core/log/python_traceback.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "supervisor/core/log/ascii.h"
#include "supervisor/core/log/line_cleaner.h"
#include "supervisor/core/log/quotes.h"

namespace berth::core {
namespace {

constexpr std::string_view kHeader = "Traceback (most recent call last):";
constexpr std::string_view kGroup = "Exception Group ";
constexpr std::array<std::string_view, 2> kChainingSentences = {
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
};
constexpr std::string_view kLoggingError = "--- Logging error ---";
constexpr std::string_view kIgnored = "Exception ignored";

// What stands before the header on its line, or nothing where the line is no header (D5, D6).
std::optional<std::string_view> text_before_header(std::string_view line) {
  if (!line.ends_with(kHeader) || is_indented(line)) return std::nullopt;
  const std::string_view text = line.substr(0, line.size() - kHeader.size());
  if (text.ends_with(kGroup) || without_trailing_blanks(text).ends_with('|')) return std::nullopt;
  if (ends_in_opening_quote(text)) return std::nullopt;
  return text;
}

bool is_name_character(char c, bool first) {
  if ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_') return true;
  if (static_cast<unsigned char>(c) >= 0x80) return true;
  return !first && c >= '0' && c <= '9';
}

// Length of the dotted name that `line` begins with, or 0. A part may be "<locals>", as in the
// qualified name of a class that a function defines.
std::size_t dotted_name_length(std::string_view line) {
  std::size_t at = 0;
  while (true) {
    const bool bracketed = at < line.size() && line[at] == '<';
    if (bracketed) ++at;
    const std::size_t begin = at;
    while (at < line.size() && is_name_character(line[at], at == begin)) ++at;
    if (at == begin) return 0;
    if (bracketed) {
      if (at == line.size() || line[at] != '>') return 0;
      ++at;
    }
    if (at == line.size() || line[at] != '.') return at;
    ++at;
  }
}

// Both out-of-memory texts, of CUDA and of HIP, with which torch's errors of any name begin (D9).
bool out_of_device_memory(std::string_view text) {
  constexpr std::array<std::string_view, 4> kBegins = {
      "CUDA out of memory", "CUDA error: out of memory", "HIP out of memory",
      "HIP error: out of memory"};
  return std::ranges::any_of(kBegins,
                             [text](std::string_view begin) { return text.starts_with(begin); });
}

}  // namespace

std::vector<std::string> default_fatal_exceptions() {
  return {"ValueError", "ModuleNotFoundError", "ImportError"};
}

TracebackReader::TracebackReader(std::vector<std::string> fatal_exceptions)
    : fatal_(std::move(fatal_exceptions)) {}

void TracebackReader::reset() {
  state_ = State::kNone;
  survived_ = false;
  survival_noted_ = false;
}

void TracebackReader::note_survival(std::string_view message) {
  if (message.ends_with(kLoggingError) || message.starts_with(kIgnored)) survival_noted_ = true;
}

TracebackReader::Step TracebackReader::read(std::string_view line) {
  if (line.empty()) return Step::kBlank;
  if (state_ != State::kNone) {
    const auto step = state_ == State::kHeader ? step_behind_header(line) : step_inside(line);
    if (step) return *step;
  }
  const auto text = text_before_header(line);
  if (!text) {
    reset();
    return Step::kOther;
  }
  survived_ = survival_noted_ || (state_ == State::kChained && survived_);
  survival_noted_ = false;
  state_ = State::kHeader;
  prefix_ = *text;
  return Step::kInside;
}

// The line straight after a header, or nothing where it belongs to no traceback.
std::optional<TracebackReader::Step> TracebackReader::step_behind_header(std::string_view line) {
  const std::string_view prefix = prefix_;
  if (is_indented(line)) {
    prefix_.clear();
    state_ = State::kFrames;
    return Step::kInside;
  }
  if (prefix.empty()) return std::nullopt;
  if (line == without_trailing_blanks(prefix)) return Step::kBlank;
  if (!line.starts_with(prefix) || !is_indented(line.substr(prefix.size()))) return std::nullopt;
  state_ = State::kFrames;
  return Step::kInside;
}

// A line behind a frame, or nothing where it belongs to no traceback.
std::optional<TracebackReader::Step> TracebackReader::step_inside(std::string_view line) {
  if (!prefix_.empty()) {
    if (line == without_trailing_blanks(prefix_)) return Step::kBlank;
    if (!line.starts_with(prefix_)) return std::nullopt;
    line.remove_prefix(prefix_.size());
  }
  if (state_ == State::kEnded) {
    if (std::ranges::find(kChainingSentences, line) == kChainingSentences.end()) {
      return std::nullopt;
    }
    state_ = State::kChained;
    return Step::kChained;
  }
  if (state_ != State::kFrames) return std::nullopt;
  if (is_indented(line)) return Step::kInside;

  const std::size_t name_length = dotted_name_length(line);
  if (name_length == 0) return std::nullopt;
  std::string_view text = line.substr(name_length);
  if (!text.empty() && (text.front() != ':' || (text.size() > 1 && !is_blank(text[1])))) {
    return std::nullopt;
  }
  if (!text.empty()) text.remove_prefix(1);
  const std::string_view name = line.substr(0, name_length);
  const auto failure_class =
      survived_ ? std::nullopt : class_of(name, without_leading_blanks(text));
  // "ERROR: Traceback (…):" has the form of a terminal line, too, and is the next header.
  if (!failure_class && text_before_header(line)) return std::nullopt;
  state_ = State::kEnded;
  if (!failure_class) return Step::kOther;
  terminal_ = {*failure_class, name, line};
  return Step::kTerminal;
}

std::optional<FailureClass> TracebackReader::class_of(std::string_view name,
                                                      std::string_view text) const {
  constexpr std::array<std::string_view, 3> kOutOfMemory = {"MemoryError", "torch.OutOfMemoryError",
                                                            "torch.cuda.OutOfMemoryError"};
  if (std::ranges::find(kOutOfMemory, name) != kOutOfMemory.end() || out_of_device_memory(text)) {
    return FailureClass::kResource;
  }
  if (name == "OSError" && contains_ignoring_case(text, "address already in use")) {
    return FailureClass::kCrash;
  }
  if (std::ranges::find(fatal_, name) != fatal_.end()) return FailureClass::kPermanent;
  return std::nullopt;
}

}  // namespace berth::core
