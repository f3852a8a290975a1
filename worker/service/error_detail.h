#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "berth/v1/error.pb.h"
#include "common/result.h"

namespace berth::worker {

constexpr const char* kErrorTrailer = "berth-error-bin";

// The protocol's form of an error.
v1::ErrorDetail to_detail(const Error& error, const std::string& request_id);
grpc::Status to_status(const Error& error);

}  // namespace berth::worker
