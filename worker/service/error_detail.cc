#include "worker/service/error_detail.h"

#include <algorithm>

#include "common/text.h"

namespace berth::worker {
namespace {

constexpr double kRetrySeconds = 1;

void cut(std::string& text) {
  text.resize(utf8_prefix(text, kTrailerTextBytes));
}

}  // namespace

v1::ErrorDetail to_detail(const Error& error, const std::string& request_id) {
  const auto& info = reason_info(error.reason);
  v1::ErrorDetail detail;
  detail.set_reason(std::string(info.name));
  detail.set_message(error.message);
  detail.set_request_id(request_id);
  if (info.retry == Retry::kAlways) detail.set_retry_after_seconds(kRetrySeconds);
  if (error.extras == nullptr) return detail;
  const auto& extras = *error.extras;
  detail.set_param(extras.param);
  if (extras.retry_after_seconds) detail.set_retry_after_seconds(*extras.retry_after_seconds);
  for (const auto& name : extras.suggestions) detail.add_suggestions(name);
  if (extras.needed) detail.set_needed(*extras.needed);
  if (extras.limit) detail.set_limit(*extras.limit);
  return detail;
}

std::string to_trailer(v1::ErrorDetail detail) {
  cut(*detail.mutable_message());
  cut(*detail.mutable_param());
  cut(*detail.mutable_request_id());
  auto& names = *detail.mutable_suggestions();
  names.DeleteSubrange(std::min(names.size(), kTrailerSuggestions),
                       std::max(0, names.size() - kTrailerSuggestions));
  for (auto& name : names) cut(name);
  return detail.SerializeAsString();
}

grpc::Status to_status(const Error& error) {
  auto message = error.message;
  cut(message);
  return {static_cast<grpc::StatusCode>(reason_info(error.reason).grpc_code), message};
}

}  // namespace berth::worker
