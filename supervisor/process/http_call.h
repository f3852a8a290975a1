#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "common/clock.h"
#include "common/result.h"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace berth::process {

// Where a program listens: a port of 127.0.0.1, or the path of a Unix socket.
struct HttpAddress {
  std::uint16_t port = 0;  // 0: `socket`
  std::string socket;
};

// One request of our own to a program; what it answers is not trusted.
struct HttpRequest {
  std::string path;                              // "/v1/models"
  std::string body{};                            // JSON for a POST; empty: a GET
  std::string key{};                             // sent as "Authorization: Bearer KEY"; empty: none
  Duration deadline = std::chrono::seconds(10);  // zero: none; its maker drops the timer in time
  std::size_t most_bytes = 1024UL * 1024UL;      // of the answer's body
};

struct HttpAnswer {
  unsigned int status = 0;
  std::string body;
};

// Makes one HTTP/1.1 request on a connection of its own. `done` is called once, never from within
// this call, unless the timer is dropped first, which ends the request. Errors:
// kWorkerDied (nobody listens, the connection broke), kDeadline, kInternal (what came is no HTTP or
// too long), each with what happened. Blocks nothing. Core strand only, which runs `io`.
Timer http_call(boost::asio::io_context& io, const HttpAddress& address, const HttpRequest& request,
                std::function<void(Result<HttpAnswer>)> done);

}  // namespace berth::process
