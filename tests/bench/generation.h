#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "berth/v1/inference.grpc.pb.h"
#include "berth/v1/worker.grpc.pb.h"
#include "common/result.h"

namespace berth::bench {

using Nanoseconds = std::chrono::nanoseconds;

// What the client of one generation saw, measured from the call until the event or the end.
struct Measured {
  Nanoseconds first_token{};
  Nanoseconds last_token{};
  Nanoseconds whole{};
  std::uint32_t tokens = 0;  // as usage says
  std::string text;
};

// The request of all measurements: one user message, greedy, at most `max_tokens` tokens.
berth::v1::GenerateRequest chat_request(std::string_view model, std::string_view question,
                                        std::uint32_t max_tokens);

// A connection to berthd or directly to a worker, on its Unix socket ("unix:PATH"). The constructor
// waits for the connection, at most 10 s. One thread.
class Inference {
 public:
  static Result<std::unique_ptr<Inference>> to_berthd(const std::string& endpoint);
  static Result<std::unique_ptr<Inference>> to_worker(const std::string& endpoint);

  Inference() = default;
  Inference(const Inference&) = delete;
  Inference& operator=(const Inference&) = delete;
  virtual ~Inference() = default;

  // Runs one generation to its end. Errors: whatever ended it, and an answer without `done`.
  virtual Result<Measured> generate(const berth::v1::GenerateRequest& request) = 0;
};

}  // namespace berth::bench
