#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "supervisor/core/generation.h"

namespace berth::rpc {

// The lines of an event stream that comes in pieces, and what they say. What a program sends is not
// trusted: a line is bounded, and what cannot be read is an error.
class CommandEvents {
 public:
  // At most 4 MiB of one line are kept. Errors: kInternal.
  Status feed(std::string_view piece);
  // An answer that is no stream, whole.
  Status feed_whole(std::string_view body);

  // What has come since the last call.
  std::vector<core::TokenEvent> take() { return std::exchange(tokens_, {}); }
  // "[DONE]" came.
  [[nodiscard]] bool complete() const { return complete_; }
  // stop | length | tool_calls; absent: not said yet.
  [[nodiscard]] const std::optional<std::string>& finish_reason() const { return finish_reason_; }
  [[nodiscard]] const core::Usage& usage() const { return usage_; }

 private:
  Status take_line();
  Status read(std::string_view json);

  std::string line_;
  bool complete_ = false;
  std::vector<core::TokenEvent> tokens_;
  std::optional<std::string> finish_reason_;
  core::Usage usage_;
};

// What an answer with an error status (400 and more) says, in the words of the program, which hold
// no path: 4xx kInvalidArgument, 429 kQueueFull, others kInternal. `body` may be cut.
Error command_error(unsigned int status, std::string_view body, std::string_view retry_after);

}  // namespace berth::rpc
