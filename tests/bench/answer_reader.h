#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace berth::bench {

// Reads one HTTP/1.1 answer as it comes in pieces: with Content-Length, in chunks, or until the
// connection ends. One thread; after complete() reset() begins the next answer.
class AnswerReader {
 public:
  using OnBody = std::function<Status(std::string_view)>;

  // `on_body` sees the body's bytes as they come.
  explicit AnswerReader(OnBody on_body) : on_body_(std::move(on_body)) {}

  // Errors: no HTTP, a chunk that is none, bytes behind the answer, what on_body said.
  Status feed(std::string_view bytes);
  // The connection has ended. Errors: the answer is not complete.
  Status end();
  void reset();

  [[nodiscard]] bool head_complete() const { return state_ != State::kHead; }
  [[nodiscard]] bool complete() const { return state_ == State::kComplete; }
  [[nodiscard]] int status() const { return status_; }
  // Whether the server closes the connection behind this answer.
  [[nodiscard]] bool closes() const { return closes_; }

 private:
  enum class State : std::uint8_t {
    kHead,
    kBody,       // `left_` bytes
    kChunkLine,  // its size
    kChunk,      // `left_` bytes
    kChunkEnd,   // its line end
    kTrailer,
    kUntilEnd,
    kComplete,
  };

  Status read_head(std::string_view head);
  Status read_line(std::string_view line);
  Status take_body(std::string_view& bytes);

  OnBody on_body_;
  State state_ = State::kHead;
  std::string line_;  // of the head or a chunk line, as far as it is there
  std::size_t left_ = 0;
  int status_ = 0;
  bool closes_ = false;
};

}  // namespace berth::bench
