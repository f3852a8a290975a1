#pragma once

#include <grpcpp/impl/service_type.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "common/result.h"
#include "supervisor/rpc/call_access.h"

namespace berth::gateway {

// A service whose callers are looked at as soon as a call's metadata are there, before anything of
// its message is read: gRPC itself hands a call with one message over when that has come, so that
// somebody without a key could let the server keep messages of the largest size. A call that
// `access` refuses reaches the service with an empty message, so that the service ends it in its
// own way: what it then asks verdict_at_gate() is the reason.
//
// The service has callback methods only, none of which takes a stream; `name` is its full one. What
// is returned owns it, and is served in its place.
std::unique_ptr<grpc::Service> gated(std::unique_ptr<grpc::Service> service,
                                     const std::string& name, rpc::CallAccess access);

// A service that is open to everybody, also without a key: the message of a call has to come within
// that time, or the call ends with DEADLINE_EXCEEDED. As long as there is a call its connection is
// not idle, so that one who sends nothing could keep it for ever. Otherwise as gated().
std::unique_ptr<grpc::Service> timed(std::unique_ptr<grpc::Service> service,
                                     const std::string& name, std::chrono::milliseconds within);

// Of the call that is just handed over on this thread: whether its caller was let in at the gate,
// or why not; absent: nobody asked there, as it came through none, or one that is open to
// everybody.
const std::optional<Status>& verdict_at_gate();

}  // namespace berth::gateway
