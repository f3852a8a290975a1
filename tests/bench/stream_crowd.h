#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "tests/bench/http_client.h"

namespace berth::bench {

// What all streams of a crowd have in common.
struct CrowdOptions {
  Address server;
  std::string model;  // served by a FakeEngine that never ends an answer
  std::uint32_t streams = 1;
  std::uint32_t tokens = 1;  // of each
  std::chrono::seconds time{600};
};

// How a crowd ended. A stream with more than one fault is counted with the first.
struct CrowdResult {
  std::uint32_t complete = 0;      // its own text, token by token, its finish reason and [DONE]
  std::uint32_t refused = 0;       // no stream was begun
  std::uint32_t wrong_text = 0;    // tokens lost, doubled, or of another stream
  std::uint32_t unterminated = 0;  // it ended without a finish reason or without [DONE]
  std::string first_fault;
  std::uint64_t tokens = 0;
  double wall_us = 0;    // from the first request to the last end
  double steady_us = 0;  // from when every stream had its first token to when the first one ended
  std::uint64_t steady_tokens = 0;
  std::vector<double> first_token_us;  // of each stream, from its request on
  std::vector<double> gap_us;          // between two tokens of one stream; at most two millions
};

// Streams over SSE, all at once, each with a prompt of its own, whose answer this side knows.
class StreamCrowd {
 public:
  static constexpr std::uint32_t kMostStreams = 3000;

  explicit StreamCrowd(CrowdOptions options);
  ~StreamCrowd();

  // Errors: a connection that cannot be made; kDeadline.
  Result<CrowdResult> run();
  // Opens all streams and returns when every one has its head and is waiting for tokens.
  Status open();
  // Hangs up on all.
  void hang_up();

 private:
  class Stream;
  Status start();
  [[nodiscard]] std::chrono::steady_clock::time_point deadline() const;

  const CrowdOptions options_;
  Poller poller_;
  std::vector<std::unique_ptr<Stream>> streams_;
  CrowdResult result_;
  std::chrono::steady_clock::time_point began_;
  std::chrono::steady_clock::time_point steady_from_;
  std::uint32_t begun_ = 0;  // streams with a token
  std::uint32_t ended_ = 0;
};

}  // namespace berth::bench
