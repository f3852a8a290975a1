#include "supervisor/rpc/error_detail.h"

#include <cstddef>
#include <utility>

#include "common/text.h"

namespace berth::rpc {
namespace {

void put_failure(const FailureEvidence& from, Audience audience, v1::Failure& to) {
  to.set_id(from.id);
  to.set_class_(from.failure_class);
  to.set_reason(from.reason);
  to.set_since_unix_ms(from.since_unix_ms);
  if (from.exit_code) to.set_exit_code(*from.exit_code);
  to.set_signal(from.signal);
  to.set_instance_id(from.instance_id);
  if (audience != Audience::kAdmin) return;
  for (const std::string& line : from.log_tail) to.add_log_tail(line);
  for (const std::string& word : from.command) to.add_command(word);
}

FailureEvidence get_failure(const v1::Failure& from) {
  FailureEvidence to;
  to.id = from.id();
  to.failure_class = from.class_();
  to.reason = from.reason();
  to.since_unix_ms = from.since_unix_ms();
  if (from.has_exit_code()) to.exit_code = from.exit_code();
  to.signal = from.signal();
  to.instance_id = from.instance_id();
  to.log_tail.assign(from.log_tail().begin(), from.log_tail().end());
  to.command.assign(from.command().begin(), from.command().end());
  return to;
}

void put_memory(const MemoryShortage& from, v1::ErrorDetail& to) {
  to.set_domain(from.domain);
  to.set_needed_bytes(from.needed_bytes);
  to.set_limit_bytes(from.limit_bytes);
  to.set_available_bytes(from.available_bytes);
  to.set_deficit_bytes(from.deficit_bytes);
  if (!from.would_fit) return;
  to.mutable_would_fit()->set_context(from.would_fit->context);
  to.mutable_would_fit()->set_sequences(from.would_fit->sequences);
}

MemoryShortage get_memory(const v1::ErrorDetail& from) {
  MemoryShortage to{from.domain(), from.needed_bytes(), from.limit_bytes(), from.available_bytes(),
                    from.deficit_bytes()};
  if (from.has_would_fit()) {
    to.would_fit = WouldFit{from.would_fit().context(), from.would_fit().sequences()};
  }
  return to;
}

// What a status without a trailer of ours means: gRPC's own refusals.
Reason reason_of_code(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::OUT_OF_RANGE:
      return Reason::kInvalidArgument;
    case grpc::StatusCode::NOT_FOUND:
      return Reason::kNotFound;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Reason::kDeadline;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return Reason::kBodyTooLarge;
    case grpc::StatusCode::FAILED_PRECONDITION:
      return Reason::kConflict;
    case grpc::StatusCode::UNAVAILABLE:
      return Reason::kWorkerDied;
    case grpc::StatusCode::PERMISSION_DENIED:
      return Reason::kPermissionDenied;
    case grpc::StatusCode::UNAUTHENTICATED:
      return Reason::kUnauthenticated;
    default:
      return Reason::kInternal;
  }
}

std::string cut(const std::string& text) {
  return text.substr(0, utf8_prefix(text, kTrailerTextBytes));
}

}  // namespace

v1::ErrorDetail to_proto(const Error& error, const std::string& request_id, Audience audience) {
  v1::ErrorDetail detail;
  detail.set_reason(std::string(reason_info(error.reason).name));
  detail.set_message(error.message);
  detail.set_request_id(request_id);
  if (!error.extras) return detail;
  const ErrorExtras& extras = *error.extras;
  detail.set_param(extras.param);
  if (extras.retry_after_seconds) detail.set_retry_after_seconds(*extras.retry_after_seconds);
  for (const std::string& name : extras.suggestions) detail.add_suggestions(name);
  if (extras.needed) detail.set_needed(*extras.needed);
  if (extras.limit) detail.set_limit(*extras.limit);
  if (extras.failure) put_failure(*extras.failure, audience, *detail.mutable_failure());
  if (extras.holder) {
    detail.mutable_holder()->set_model(extras.holder->model);
    detail.mutable_holder()->set_state(extras.holder->state);
    detail.mutable_holder()->set_since_unix_ms(extras.holder->since_unix_ms);
    detail.mutable_holder()->set_job(extras.holder->job);
  }
  if (extras.memory) put_memory(*extras.memory, detail);
  return detail;
}

Error from_proto(const v1::ErrorDetail& detail) {
  ErrorExtras extras;
  extras.param = detail.param();
  if (detail.has_retry_after_seconds()) extras.retry_after_seconds = detail.retry_after_seconds();
  extras.suggestions.assign(detail.suggestions().begin(), detail.suggestions().end());
  if (detail.has_needed()) extras.needed = detail.needed();
  if (detail.has_limit()) extras.limit = detail.limit();
  if (detail.has_failure()) extras.failure = get_failure(detail.failure());
  if (detail.has_holder()) {
    extras.holder = HolderInfo{detail.holder().model(), detail.holder().state(),
                               detail.holder().job(), detail.holder().since_unix_ms()};
  }
  if (!detail.domain().empty()) extras.memory = get_memory(detail);
  const std::optional<Reason> reason = reason_from_name(detail.reason());
  std::string message = detail.message();
  if (!reason) message = detail.reason() + ": " + message;
  return Error(reason.value_or(Reason::kInternal), std::move(message), std::move(extras));
}

grpc::Status to_status(const Error& error) {
  const auto code = static_cast<grpc::StatusCode>(reason_info(error.reason).grpc_code);
  return {code, cut(error.message)};
}

std::string to_trailer(const v1::ErrorDetail& detail) {
  v1::ErrorDetail brief = detail;
  brief.set_message(cut(detail.message()));
  if (brief.has_failure()) {
    brief.mutable_failure()->set_reason(cut(detail.failure().reason()));
    brief.mutable_failure()->clear_log_tail();
    brief.mutable_failure()->clear_command();
  }
  for (std::string& name : *brief.mutable_suggestions()) name = cut(name);
  return brief.SerializeAsString();
}

Error from_status(const grpc::Status& status, const std::string& trailer) {
  v1::ErrorDetail detail;
  if (!trailer.empty() && detail.ParseFromString(trailer) && !detail.reason().empty()) {
    return from_proto(detail);
  }
  return Error(reason_of_code(status.error_code()), status.error_message());
}

}  // namespace berth::rpc
