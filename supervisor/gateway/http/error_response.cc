#include "supervisor/gateway/http/error_response.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "supervisor/core/failure.h"
#include "supervisor/gateway/auth/entitlement.h"

namespace berth::gateway {
namespace {

namespace json = boost::json;

// Until a server that stops may be back.
constexpr double kRestartSeconds = 5;

// What OpenAI's clients know errors by.
std::string_view type_of(const ReasonInfo& info) {
  switch (info.http_status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    default:
      return info.http_status < 500 ? "invalid_request_error" : "server_error";
  }
}

// A failure that stands until somebody does something. Free memory may come by itself.
bool stands(const Error& error) {
  if (error.reason != Reason::kLoadFailed || !error.extras || !error.extras->failure) return false;
  const core::FailureClass failure_class =
      core::failure_class_from_name(error.extras->failure->failure_class);
  return failure_class != core::FailureClass::kResource &&
         failure_class != core::FailureClass::kOom;
}

void put_text(json::object& to, std::string_view name, const std::string& value) {
  if (!value.empty()) to[name] = value;
}

json::object failure_of(const FailureEvidence& from) {
  json::object to;
  to["id"] = from.id;
  to["class"] = from.failure_class;
  to["since_unix_ms"] = from.since_unix_ms;
  put_text(to, "reason", from.reason);
  if (from.exit_code) to["exit"] = *from.exit_code;
  put_text(to, "signal", from.signal);
  put_text(to, "instance_id", from.instance_id);
  if (!from.log_tail.empty()) {
    to["log_tail"] = json::array(from.log_tail.begin(), from.log_tail.end());
  }
  if (!from.command.empty()) to["command"] = json::array(from.command.begin(), from.command.end());
  return to;
}

void put_memory(const MemoryShortage& from, json::object& to) {
  to["domain"] = from.domain;
  to["needed_bytes"] = from.needed_bytes;
  to["limit_bytes"] = from.limit_bytes;
  to["available_bytes"] = from.available_bytes;
  to["deficit_bytes"] = from.deficit_bytes;
  if (!from.would_fit) return;
  to["would_fit"] =
      json::object{{"context", from.would_fit->context}, {"sequences", from.would_fit->sequences}};
}

json::object detail_of(const ErrorExtras& extras) {
  json::object to;
  if (extras.retry_after_seconds) to["retry_after_seconds"] = *extras.retry_after_seconds;
  if (extras.needed) to["needed"] = *extras.needed;
  if (extras.limit) to["limit"] = *extras.limit;
  if (!extras.suggestions.empty()) {
    to["suggestions"] = json::array(extras.suggestions.begin(), extras.suggestions.end());
  }
  if (extras.memory) put_memory(*extras.memory, to);
  if (extras.failure) to["failure"] = failure_of(*extras.failure);
  if (extras.holder) {
    json::object& holder = to["holder"].emplace_object();
    holder["model"] = extras.holder->model;
    holder["state"] = extras.holder->state;
    put_text(holder, "job", extras.holder->job);
    holder["since_unix_ms"] = extras.holder->since_unix_ms;
  }
  return to;
}

}  // namespace

std::string error_body(const Error& whole_error, const std::string& request_id,
                       const core::Caller& caller) {
  const Error error = for_caller(whole_error, caller);
  const ReasonInfo& info = reason_info(error.reason);
  json::object body;
  body["message"] = error.message;
  body["type"] = type_of(info);
  body["code"] = info.name;
  body["param"] = nullptr;
  if (error.extras && !error.extras->param.empty()) body["param"] = error.extras->param;
  body["request_id"] = request_id;
  if (error.extras) {
    json::object detail = detail_of(*error.extras);
    if (!detail.empty()) body["detail"] = std::move(detail);
  }
  json::object whole;
  whole["error"] = std::move(body);
  return json::serialize(whole);
}

HttpResponse error_response(const Error& error, const std::string& request_id,
                            const core::Caller& caller) {
  const ReasonInfo& info = reason_info(error.reason);
  HttpResponse response;
  response.status = info.http_status;
  response.body = error_body(error, request_id, caller) + "\n";
  // OpenAI's clients ask again after 409 and from 500 on, unless told not to.
  if (info.retry == Retry::kNever || info.retry == Retry::kByHand || stands(error)) {
    response.headers.push_back({"x-should-retry", "false"});
  }
  if (error.reason == Reason::kUnauthenticated) {
    response.headers.push_back({"WWW-Authenticate", "Bearer"});
  }
  std::optional<double> retry;
  if (error.extras) retry = error.extras->retry_after_seconds;
  if (error.reason == Reason::kShuttingDown && !retry) retry = kRestartSeconds;
  if (retry) {
    // Whole seconds, and never sooner than said.
    const double seconds = std::ceil(std::max(*retry, 0.0));
    response.headers.push_back(
        {"Retry-After", std::to_string(static_cast<std::int64_t>(std::min(seconds, 86400.0)))});
  }
  return response;
}

}  // namespace berth::gateway
