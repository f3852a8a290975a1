#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "tests/bench/http_client.h"

namespace berth::bench {

// The same short request again and again: each lane sends its next one when the last is answered.
struct LoadOptions {
  std::string model;
  std::uint32_t lanes = 1;
  std::uint32_t requests = 1;  // of all lanes together
  std::chrono::seconds time{600};
};

struct LoadResult {
  double wall_us = 0;
  std::vector<double> latency_us;  // of each request, from its sending to the end of its answer
};

inline constexpr std::string_view kShortPrompt = "The capital of France is";

// To an OpenAI server, not streamed. A connection that the server keeps is used again; else the
// next one is there before the request's time runs. Errors: any answer but 200; kDeadline.
Result<LoadResult> http_load(const Address& server, const LoadOptions& options);

// To berthd, or directly to a worker, over one gRPC channel.
enum class Service : std::uint8_t { kBerthd, kWorker };
Result<LoadResult> grpc_load(const std::string& endpoint, Service service,
                             const LoadOptions& options);

}  // namespace berth::bench
