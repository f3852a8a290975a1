#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace berth::gateway {

// What one client, and all of them together, may take of the HTTP server. docs/security.md tells
// them to operators.
struct HttpLimits {
  // Open at the same time, half of them from one address; the next one ends the one that has waited
  // longest for a request, or is answered 429 and closed.
  std::size_t connections = 4096;
  // Request line and header fields, and also what is read ahead of a request that is worked on.
  static constexpr std::size_t kHeaderBytes = 16U << 10;
  static constexpr std::size_t kHeaderFields = 100;
  std::uint64_t max_body = 64U << 20;  // bytes of one request
  // Bytes that came of all bodies that are being received or wait for the pool; at least four
  // times max_body. More wait. One address has half of it.
  std::uint64_t bodies_in_flight = 256U << 20;
  // The same of small ones, besides.
  std::uint64_t small_bodies_in_flight = 64U << 20;
  // From this size on a body is parsed on the pool.
  std::size_t pool_body = 256U << 10;
  // Bytes of large answers (kLargeAnswer) that wait for their clients; beyond it the one ends that
  // takes its time longest.
  std::uint64_t answers_in_flight = 512U << 20;
  static constexpr std::size_t kLargeAnswer = 64U << 10;

  std::chrono::milliseconds handshake_timeout{10'000};  // TLS
  // From the connection's start, or a request's first byte, to the end of its header.
  std::chrono::milliseconds header_timeout{10'000};
  std::chrono::milliseconds idle_timeout{60'000};  // between requests
  // A body may take this long, and a second more for each body_bytes_per_second of it.
  std::chrono::milliseconds body_grace{10'000};
  std::uint64_t body_bytes_per_second = 16U << 10;
  std::chrono::milliseconds body_wait{5'000};  // for other bodies to go, then 429
  // For a client to take one byte; and for all that is being written to him, with a second more for
  // each answer_bytes_per_second that he took.
  std::chrono::milliseconds write_timeout{60'000};
  std::uint64_t answer_bytes_per_second = 16U << 10;
  std::chrono::milliseconds linger{1'000};  // for a client to read the last answer
};

}  // namespace berth::gateway
