#include "worker/service/error_detail.h"

namespace berth::worker {
namespace {

constexpr double kRetrySeconds = 1;

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
  if (extras.needed) detail.set_needed(*extras.needed);
  if (extras.limit) detail.set_limit(*extras.limit);
  return detail;
}

grpc::Status to_status(const Error& error) {
  return {static_cast<grpc::StatusCode>(reason_info(error.reason).grpc_code), error.message};
}

}  // namespace berth::worker
