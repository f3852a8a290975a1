#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "worker/answer/answer_form.h"

namespace berth::worker {

// A text that begins tool calls within an answer.
struct CallOpener {
  std::string_view text;
  bool is_wrapper = false;  // a CallToken of kNext must follow before the first call
};

// What may stand between calls and after the last one, beside whitespace.
struct CallToken {
  enum class Role : std::uint8_t {
    kSeparator,  // another call must follow, else it is content
    kClose,      // ends a call
    kEnd,        // ends all calls
    kNext        // begins the next call
  };
  // Shorter texts (a bracket, a comma, a fence) are not framing where they stand alone.
  static constexpr std::size_t kMinMarkBytes = 4;

  std::string_view text;
  Role role = Role::kSeparator;

  [[nodiscard]] bool is_mark() const { return text.size() >= kMinMarkBytes; }
};

// How one form writes its calls, as far as it can be said in a table. An opener that also stands
// between calls is among the tokens too.
struct CallSyntax {
  std::vector<CallOpener> openers;
  std::vector<CallToken> tokens;
  // An answer that begins with one of these bytes may be a call as a whole; empty: it may not.
  std::string_view bare_starts;
  bool is_json = true;  // calls may be JSON objects with their name within, or a list of them
  // For names that stand before the arguments: the name in the text between opener and arguments.
  // Null: the form has none such.
  std::optional<std::string> (*name_in_header)(std::string_view header) = nullptr;
  bool header_has_spaces = false;  // otherwise the first whitespace ends the hope for a call
};

// Of every form but kHarmony, which is no sequence of calls within a text (HarmonyReader); lives as
// long as the program.
const CallSyntax& call_syntax(ToolForm form);

}  // namespace berth::worker
