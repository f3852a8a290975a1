#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/core/generation.h"

namespace berth::gateway {

// Finds the member `model` of the outermost object of a JSON text, so that its value can be
// replaced in place: every other byte stays as it came, numbers, order, duplicates and escapes with
// it. The text comes byte by byte, in any pieces, and need not be well-formed; nothing of it is
// kept.
class ModelScanner {
 public:
  enum class Byte : std::uint8_t {
    kKeep,  // stays
    kName,  // begins a string that is the value of `model`; the new one belongs here
    kDrop,  // belongs to such a string
  };
  Byte take(char byte);
  // How many bytes at the front of `text` are kKeep and need not be taken.
  [[nodiscard]] std::size_t skippable(std::string_view text) const;

  // The object `usage` of the outermost one, as it came; empty where there is none, or where it is
  // longer than 1 KiB.
  [[nodiscard]] const std::string& usage() const { return usage_; }
  // Whether the outermost object has an `error` that is not null.
  [[nodiscard]] bool saw_error() const { return saw_error_; }

 private:
  enum class Role : std::uint8_t { kKey, kModel, kOther };

  Byte take_in_string(char byte);
  Byte take_outside(char byte);
  void open(char byte);
  void close();
  void end_key();
  Byte open_string();

  std::size_t depth_ = 0;
  bool in_object_ = false;  // the outermost value is one
  bool in_string_ = false;
  bool escaped_ = false;
  bool expects_key_ = false;  // these two in the outermost object
  bool expects_value_ = false;
  Role role_ = Role::kOther;  // of the string
  std::string key_;  // as written; cut where it is longer than any way to write one of ours
  bool key_is_model_ = false;
  bool key_is_error_ = false;
  bool key_is_usage_ = false;
  bool in_usage_ = false;
  std::string usage_;
  bool saw_error_ = false;
};

// Cuts a request's body where the value of `model` stands, which is left out: one piece more than
// there are such values.
std::vector<std::string> cut_at_model(std::string_view body);

// What an answer is, by its content type.
enum class AnswerKind : std::uint8_t { kJson, kEvents, kOther };
AnswerKind answer_kind(std::string_view content_type);

// Puts our name for a model into an answer that comes in pieces: into whole JSON, or into the
// `data:` lines of an event stream.
class AnswerNames {
 public:
  AnswerNames(AnswerKind kind, const std::string& name);

  // The piece as it is to be sent; may be empty.
  std::string rename(std::string_view piece);
  // Whether an event stream may end here: its last event said "[DONE]", or an error.
  [[nodiscard]] bool event_stream_ended() const;
  // Whether an event stream is over, whatever its connection does: "[DONE]", and the empty line
  // that ends the event, have passed.
  [[nodiscard]] bool event_stream_complete() const { return complete_; }
  // The tokens that the answer says it took; what it does not say is 0.
  [[nodiscard]] core::Usage usage() const;

 private:
  enum class Place : std::uint8_t { kField, kData, kRest };

  void rename_json(std::string_view piece, std::string& out);
  void end_line();

  const AnswerKind kind_;
  const std::string quoted_name_;
  ModelScanner scanner_;
  Place place_ = Place::kField;
  std::size_t matched_ = 0;  // bytes of "data:"
  std::string data_;         // the first bytes of such a line, without blanks
  bool done_ = false;
  bool error_ = false;
  bool complete_ = false;
  bool line_empty_ = true;
  bool after_return_ = false;  // a line feed now belongs to the line end that was
  std::string usage_;          // of the events that are over
};

}  // namespace berth::gateway
