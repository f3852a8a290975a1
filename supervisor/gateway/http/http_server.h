#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/result.h"

namespace berth::gateway {

struct HttpOptions {
  std::string address;          // "HOST:PORT", an IP address or localhost; port 0: any free one
  std::function<bool()> ready;  // whether requests are taken; any thread, must not block
};

// The HTTP front: for now /livez and /readyz. Owns its listener and one thread on which everything
// of it runs. Bounded: 256 connections, 16 KiB of header, 64 KiB of body, 10 s for a request and
// 60 s of idleness. Destroying it closes every connection and joins the thread.
class HttpServer {
 public:
  // Errors: kInvalidArgument (address), kConflict (in use), kPermissionDenied; each names the
  // address and what to do.
  static Result<std::unique_ptr<HttpServer>> listen(HttpOptions options);

  HttpServer() = default;
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  virtual ~HttpServer() = default;

  // "127.0.0.1:11500", with the port that was taken.
  [[nodiscard]] virtual std::string address() const = 0;
};

}  // namespace berth::gateway
