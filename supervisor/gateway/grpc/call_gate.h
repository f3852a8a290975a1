#pragma once

#include <grpcpp/impl/service_type.h>

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
// own way: what it then asks refusal_at_gate() is the reason.
//
// The service has callback methods only, none of which takes a stream; `name` is its full one. What
// is returned owns it, and is served in its place.
std::unique_ptr<grpc::Service> gated(std::unique_ptr<grpc::Service> service,
                                     const std::string& name, rpc::CallAccess access);

// Why the call that is just handed over on this thread was refused at the gate; absent: it was not.
const std::optional<Error>& refusal_at_gate();

}  // namespace berth::gateway
