#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/uuid.h"
#include "supervisor/gateway/auth/authenticator.h"
#include "supervisor/gateway/auth/key_gate.h"
#include "supervisor/gateway/http/exchange.h"
#include "supervisor/gateway/http/http_limits.h"

namespace berth::gateway {

// What an HTTP server serves, and to whom. What pointers point to outlives the server.
struct HttpOptions {
  std::string address;  // "HOST:PORT", an IP address or localhost; port 0: any free one
  std::vector<Route> routes{};
  const Authenticator* authenticator = nullptr;  // null: only routes that are open are served
  KeyGate* key_limits = nullptr;                 // null: keys have none
  IdSource* ids = nullptr;                       // never null: of requests that bring no id
  // Told of each request, and of each connection that finds no room, on the server's thread. Must
  // not block. Empty: nobody is told.
  std::function<void(const HttpRefusal&)> on_refused{};
  HttpLimits limits{};
  std::vector<std::string> allowed_hosts{};  // besides localhost and addresses
  std::vector<std::string> cors_origins{};   // "https://host:port"; their pages may call
  // PEM files; empty: no TLS.
  std::string tls_cert{};
  std::string tls_key{};
  // The pool that parses large bodies; empty: the server's thread does.
  std::function<void(std::function<void()>)> run_blocking{};
};

// The HTTP front: takes connections, checks requests (admission.h) and gives them to their routes.
// Owns its listener and one thread on which everything of it runs; whatever clients do is bounded
// by HttpLimits. Destroying it closes every connection, tells running handlers that their clients
// are gone, and joins the thread.
class HttpServer {
 public:
  // Errors: kInvalidArgument (address, TLS files), kConflict (in use), kPermissionDenied; each
  // names what it is about and what to do.
  static Result<std::unique_ptr<HttpServer>> listen(HttpOptions options);

  HttpServer() = default;
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  virtual ~HttpServer() = default;

  // "127.0.0.1:11500", with the port that was taken.
  [[nodiscard]] virtual std::string address() const = 0;

  // From now on requests are refused as shutting_down, but for those to open routes (so that
  // /readyz can say so), and their connections closed. What runs goes on. Any thread.
  virtual void drain() = 0;
  // drain(), and takes no new connections. Returns whether no request runs any more, after `wait`
  // at most. Blocks; any thread but the server's.
  virtual bool finish(std::chrono::milliseconds wait) = 0;
};

// GET /livez: the process lives. GET /readyz: requests are taken; 503 where they are not. `ready`
// is called on the server's thread.
std::vector<Route> health_routes(std::function<bool()> ready);

}  // namespace berth::gateway
