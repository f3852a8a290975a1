#pragma once

#include <grpcpp/support/status.h>

#include <cstddef>
#include <string>

#include "berth/v1/error.pb.h"
#include "common/result.h"

namespace berth::worker {

constexpr const char* kErrorTrailer = "berth-error-bin";

// The most that gRPC's trailers carry is 8 KiB, and what is longer is lost as a whole. So texts in
// them are cut to this many bytes each, and lists to so many entries.
constexpr std::size_t kTrailerTextBytes = 512;
constexpr int kTrailerSuggestions = 3;

// The protocol's form of an error, with all of its texts.
v1::ErrorDetail to_detail(const Error& error, const std::string& request_id);
// The same as a trailer (kErrorTrailer): its texts are cut, between characters.
std::string to_trailer(v1::ErrorDetail detail);
// Its message is the trailer's.
grpc::Status to_status(const Error& error);

}  // namespace berth::worker
