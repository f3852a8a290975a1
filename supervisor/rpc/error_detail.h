#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "berth/v1/error.pb.h"
#include "common/result.h"

namespace berth::rpc {

// The trailer that carries a serialised ErrorDetail.
inline constexpr char kErrorTrailer[] = "berth-error-bin";

// Whether parts that only admins may see (log lines, command lines) are kept.
enum class Audience : std::uint8_t { kClient, kAdmin };

// Error -> message. `request_id` may be empty.
v1::ErrorDetail to_proto(const Error& error, const std::string& request_id, Audience audience);

// Message -> error. An unknown reason becomes kInternal, its name kept in the message.
Error from_proto(const v1::ErrorDetail& detail);

// The canonical status of an error, by the one error table, its message cut to kTrailerTextBytes.
// The detail is for the trailer.
grpc::Status to_status(const Error& error);

// Trailers of more than 8 KiB are not sent at all (gRPC's default limit of metadata), so what
// goes there is short: texts of at most 512 bytes, and no log or command lines. A stream's last
// event carries the whole.
inline constexpr std::size_t kTrailerTextBytes = 512;
std::string to_trailer(const v1::ErrorDetail& detail);

// What a status and its trailer (empty where there was none) say.
Error from_status(const grpc::Status& status, const std::string& trailer);

}  // namespace berth::rpc
