#include "supervisor/gateway/http/admission.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/text.h"
#include "supervisor/gateway/validate.h"

namespace berth::gateway {
namespace {

constexpr int kNoContent = 204;

bool is_write(std::string_view method) {
  return method == "POST" || method == "DELETE";
}

// "application/json", whatever parameters follow it.
bool is_json(std::string_view type) {
  constexpr std::string_view kJson = "application/json";
  return lowered(type.substr(0, type.find_first_of("; \t"))) == kJson;
}

HttpResponse preflight_answer(const std::string& methods) {
  HttpResponse answer;
  answer.status = kNoContent;
  answer.content_type.clear();
  answer.headers.push_back({"Access-Control-Allow-Methods", methods});
  // The star stands for all but Authorization.
  answer.headers.push_back({"Access-Control-Allow-Headers", "Authorization, *"});
  answer.headers.push_back({"Access-Control-Max-Age", "600"});
  return answer;
}

// Those that name no host allow none.
std::vector<HostPort> parse_hosts(const std::vector<std::string>& texts) {
  std::vector<HostPort> hosts;
  for (const std::string& text : texts) {
    if (std::optional<HostPort> host = parse_host(text)) hosts.push_back(*std::move(host));
  }
  return hosts;
}

}  // namespace

Admission::Admission(Options options, const Router& router)
    : options_(std::move(options)),
      allowed_hosts_(parse_hosts(options_.allowed_hosts)),
      router_(router) {}

Verdict Admission::judge(const RequestHead& head, const Peer& peer) const {
  Verdict verdict;
  const Status id = head.request_id ? validate_request_id(*head.request_id) : Status{};
  verdict.request_id = head.request_id && id ? *head.request_id : new_id();

  Presented presented;
  Status checked = check_source(head, presented, verdict);
  if (checked) checked = check_route(head, verdict);
  if (checked && verdict.answer) return verdict;
  if (checked) checked = check_caller(head, peer, presented, verdict);
  if (checked) checked = check_body(head);
  if (checked && !id) {
    ErrorExtras extras;
    extras.param = "X-Request-Id";
    checked = fail(Error(Reason::kInvalidArgument,
                         "X-Request-Id must be 1 to 128 characters of [A-Za-z0-9._:-].",
                         std::move(extras)));
  }
  if (!checked) {
    verdict.route = nullptr;
    verdict.refusal = checked.error();
  }
  return verdict;
}

Status Admission::check_source(const RequestHead& head, Presented& presented,
                               Verdict& verdict) const {
  const std::optional<HostPort> host = parse_host(head.host);
  if (!host || !host_allowed(*host, allowed_hosts_)) {
    return fail(Reason::kPermissionDenied,
                "The Host header names neither localhost, nor an address, nor a name of "
                "server.allowed_hosts.");
  }
  presented.authorization = head.authorization;
  presented.loopback_host = host->loopback;
  presented.forwarded = head.forwarded;
  if (!head.origin || same_origin(*head.origin, *host, options_.secure)) return {};
  const auto listed = std::ranges::find(options_.cors_origins, *head.origin);
  if (listed == options_.cors_origins.end() || *listed == "null") {
    return fail(Reason::kPermissionDenied,
                "The Origin header names a page of another server. Those that may call this one "
                "are listed in server.cors_origins.");
  }
  presented.foreign_origin = true;
  verdict.headers.push_back({"Access-Control-Allow-Origin", *listed});
  verdict.headers.push_back({"Access-Control-Expose-Headers", "X-Request-Id, Retry-After"});
  verdict.headers.push_back({"Vary", "Origin"});
  return {};
}

Status Admission::check_route(const RequestHead& head, Verdict& verdict) const {
  Result<Router::Match> match = router_.find(head.method, head.path);
  if (!match) return fail(match.error());
  if (!match->route && match->methods.empty()) {
    return fail(Reason::kNotFound, "There is no such route.");
  }
  const bool cross_origin = !verdict.headers.empty();
  if (head.method == "OPTIONS" && cross_origin && !head.preflight_method.empty()) {
    verdict.answer = preflight_answer(match->methods);
    return {};
  }
  if (!match->route) {
    verdict.headers.push_back({"Allow", match->methods});
    return fail(Reason::kMethodNotAllowed, "This route takes " + match->methods + ".");
  }
  verdict.route = match->route;
  verdict.arguments = std::move(match->arguments);
  if (is_write(head.method) && !is_json(head.content_type)) {
    return fail(Reason::kUnsupportedMediaType,
                "Send Content-Type: application/json with every POST and DELETE, also without a "
                "body.");
  }
  if (is_write(head.method) && head.content_encoded) {
    return fail(Reason::kUnsupportedMediaType,
                "The header Content-Encoding is not taken: send the body uncompressed.");
  }
  return {};
}

Status Admission::check_caller(const RequestHead& head, const Peer& peer,
                               const Presented& presented, Verdict& verdict) const {
  const Access access = verdict.route->access;
  if (access == Access::kOpen) return {};
  if (options_.authenticator == nullptr) {
    return fail(Reason::kUnauthenticated, "Nobody may use this route.");
  }
  Result<core::Caller> caller = options_.authenticator->authenticate(peer, presented);
  if (!caller) return fail(caller.error());
  verdict.caller = *std::move(caller);
  verdict.known = true;
  if (options_.limits != nullptr && verdict.route->limited) {
    Result<core::KeyPermit> permit = options_.limits->admit(verdict.caller);
    if (!permit) return fail(permit.error());
    verdict.permit = *std::move(permit);
  }
  verdict.caller.door = "http";
  if (access == Access::kAdmin && !verdict.caller.admin()) {
    return fail(Reason::kPermissionDenied, head.method + " " + head.path + " needs an admin key.");
  }
  return {};
}

Status Admission::check_body(const RequestHead& head) const {
  if (head.has_body() && !is_write(head.method)) {
    return fail(Reason::kInvalidArgument, "A " + head.method + " takes no body.");
  }
  if (head.content_length > options_.max_body) {
    ErrorExtras extras;
    extras.needed = head.content_length;
    extras.limit = options_.max_body;
    return fail(Error(Reason::kBodyTooLarge,
                      "The body has " + std::to_string(head.content_length) +
                          " bytes; server.max_body allows " + std::to_string(options_.max_body) +
                          ".",
                      std::move(extras)));
  }
  return {};
}

}  // namespace berth::gateway
