#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <string>

#include "common/result.h"
#include "supervisor/core/caller.h"
#include "supervisor/rpc/error_detail.h"

namespace berth::rpc {

// Who makes a call, and what he may be told when it fails: how the services of the gateway and the
// admin service ask for it. Functions of any thread that do not block.
struct CallAccess {
  // Errors: kUnauthenticated.
  std::function<Result<core::Caller>(const grpc::CallbackServerContext&)> caller_of;
  // Takes one request out of the limits of the caller's key, until the call ends; once a call.
  // Errors: kRateLimited. Empty: there are no limits.
  std::function<Status(const grpc::CallbackServerContext&, const core::Caller&)> admit{};
  // The error as the caller may see it (I11, I12). Empty: all of it.
  std::function<Error(Error, const core::Caller&)> cut{};
};

// Whether the call may go on: its caller is known, and the limits of his key let him in, which
// count it. Once a call. Errors: those of caller_of and admit.
Status admit(const CallAccess& access, const grpc::CallbackServerContext& context,
             const Result<core::Caller>& caller);

// The detail of an error for that caller.
v1::ErrorDetail detail_for(const CallAccess& access, const core::Caller& caller, const Error& error,
                           const std::string& request_id);

// Ends a call that has one answer with an error: its trailer, and the status. Once, in the place of
// reactor.Finish(); the context is not touched afterwards.
void finish_badly(grpc::CallbackServerContext& context, grpc::ServerUnaryReactor& reactor,
                  const v1::ErrorDetail& detail, const Error& error);

// kPermissionDenied unless the caller is an admin. `what`: "load a model by hand".
Status admins_only(const core::Caller& caller, const std::string& what);

}  // namespace berth::rpc
