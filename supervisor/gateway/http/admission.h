#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/uuid.h"
#include "supervisor/core/caller.h"
#include "supervisor/core/key_limits.h"
#include "supervisor/gateway/auth/authenticator.h"
#include "supervisor/gateway/auth/key_gate.h"
#include "supervisor/gateway/http/exchange.h"
#include "supervisor/gateway/http/host_header.h"
#include "supervisor/gateway/http/request_parser.h"
#include "supervisor/gateway/http/router.h"

namespace berth::gateway {

// What the checks of a request's head came to. Exactly one of route, answer and refusal is set.
struct Verdict {
  std::string request_id;
  core::Caller caller;              // the least of all, until he is known
  bool known = false;               // whether his key was looked at
  core::KeyPermit permit{};         // for as long as the request is worked on
  std::vector<HttpHeader> headers;  // go out with whatever is answered: CORS, Allow
  std::vector<std::string> arguments;
  const Route* route = nullptr;
  std::optional<HttpResponse> answer{};  // to a browser's preflight
  std::optional<Error> refusal{};
};

// The checks that come before a request's body is read, in their order: Host, and Origin where sent
// (403); route (404); method (405); JSON content type on writes (415); key (401); the key's limits
// (429), which count the request; role (403); what the head says of the body (413, 400). A write is
// a POST or DELETE, with a body or without: a form of a foreign page cannot have that content type
// (T95). Any thread.
class Admission {
 public:
  struct Options {
    std::vector<std::string> allowed_hosts;
    std::vector<std::string> cors_origins;         // as browsers send them: "https://host:port"
    const Authenticator* authenticator = nullptr;  // null: only open routes are served
    KeyGate* limits = nullptr;                     // null: keys have none
    IdSource* ids = nullptr;
    std::uint64_t max_body = 0;
    bool secure = false;  // the connections are TLS
  };

  Admission(Options options, const Router& router);

  [[nodiscard]] Verdict judge(const RequestHead& head, const Peer& peer) const;
  // Of a request that has no valid one, or none that could be read.
  [[nodiscard]] std::string new_id() const { return options_.ids->next().to_string(); }

 private:
  Status check_source(const RequestHead& head, Presented& presented, Verdict& verdict) const;
  Status check_route(const RequestHead& head, Verdict& verdict) const;
  Status check_caller(const RequestHead& head, const Peer& peer, const Presented& presented,
                      Verdict& verdict) const;
  [[nodiscard]] Status check_body(const RequestHead& head) const;

  const Options options_;
  const std::vector<HostPort> allowed_hosts_;
  const Router& router_;
};

}  // namespace berth::gateway
