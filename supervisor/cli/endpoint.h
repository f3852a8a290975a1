#pragma once

#include <string>
#include <string_view>

#include "common/result.h"
#include "supervisor/cli/environment.h"

namespace berth::cli {

// Where the daemon listens.
struct Endpoint {
  // As a person writes it: "unix:/run/berth/berth.sock" or "127.0.0.1:50061".
  std::string text;
  // Path of the Unix socket; empty: host and port.
  std::string socket;
  std::string host;
  int port = 0;
  // Where it was named: "--endpoint", "BERTH_ENDPOINT", the config file, or "default".
  std::string origin;
  // What went wrong on the way to it, one sentence, worth telling only where it does not answer.
  std::string note;
};

// Reads "unix:PATH", a bare absolute path, or "HOST:PORT" ("[ADDRESS]:PORT" for IPv6). Errors:
// kInvalidArgument with what was expected; a socket path must have fewer than 108 bytes.
Result<Endpoint> parse_endpoint(std::string_view text);

// The endpoint to use: `given` (--endpoint; empty: not given), else BERTH_ENDPOINT, else the first
// gRPC listener of the configured file, else the usual sockets. Errors: kInvalidArgument, where a
// person wrote one that is none.
Result<Endpoint> find_endpoint(std::string_view given, const Environment& environment);

}  // namespace berth::cli
