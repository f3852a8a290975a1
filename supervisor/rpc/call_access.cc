#include "supervisor/rpc/call_access.h"

namespace berth::rpc {

Status admit(const CallAccess& access, const grpc::CallbackServerContext& context,
             const Result<core::Caller>& caller) {
  if (!caller) return fail(caller.error());
  return access.admit ? access.admit(context, *caller) : Status();
}

v1::ErrorDetail detail_for(const CallAccess& access, const core::Caller& caller, const Error& error,
                           const std::string& request_id) {
  const Audience audience = caller.admin() ? Audience::kAdmin : Audience::kClient;
  return to_proto(access.cut ? access.cut(error, caller) : error, request_id, audience);
}

void finish_badly(grpc::CallbackServerContext& context, grpc::ServerUnaryReactor& reactor,
                  const v1::ErrorDetail& detail, const Error& error) {
  context.AddTrailingMetadata(kErrorTrailer, to_trailer(detail));
  Error told = error;
  told.message = detail.message();
  reactor.Finish(to_status(told));
}

Status admins_only(const core::Caller& caller, const std::string& what) {
  if (caller.admin()) return {};
  return fail(Reason::kPermissionDenied,
              "Only an admin may " + what +
                  ". Admins are root, berth's own user and the group berth-admin on the Unix "
                  "socket, and whoever has a key of the role admin.");
}

}  // namespace berth::rpc
