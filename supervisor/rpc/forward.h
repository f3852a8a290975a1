#pragma once

#include <string>
#include <vector>

#include "common/result.h"

namespace berth::rpc {

// A client's HTTP request that is passed on to a program nearly as it came (L27).
struct ForwardRequest {
  std::string path;  // "/v1/chat/completions"
  // The JSON of a POST, cut where the name of the model belongs: the name by which the worker knows
  // it is put between the pieces, as a JSON string. At least two pieces.
  std::vector<std::string> body;
};

// The head of the answer, as far as it concerns a client. It comes from a program that is not
// trusted: printable ASCII, at most 256 bytes each; empty: not sent.
struct ForwardHead {
  unsigned int status = 0;  // 200 to 599
  std::string content_type;
  std::string retry_after;
};

// Receives the answer, on the core strand; calls never overlap. It must not block.
class ForwardSink {
 public:
  ForwardSink() = default;
  ForwardSink(const ForwardSink&) = delete;
  ForwardSink& operator=(const ForwardSink&) = delete;
  virtual ~ForwardSink() = default;

  // Once, before any piece.
  virtual void on_head(ForwardHead head) = 0;
  // A piece of the body, in whatever sizes it comes; never empty. Returns whether there is room for
  // one more; false pauses the answer until WorkerCall::resume().
  virtual bool on_piece(std::string piece) = 0;
  // Whether the answer is complete before its connection ends.
  [[nodiscard]] virtual bool complete() const { return false; }
  // Last call. Success: the answer is complete. Errors: kWorkerDied (the connection broke, before
  // or within the answer), kDeadline, kInternal (what came is no answer in HTTP).
  virtual void on_end(Status status) = 0;
};

}  // namespace berth::rpc
