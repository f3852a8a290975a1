#include "worker/service/unary_call.h"

#include <grpcpp/server_context.h>

#include <utility>
#include <variant>

#include "worker/lanes/lane_runner.h"
#include "worker/service/error_detail.h"

namespace berth::worker {

UnaryCall::UnaryCall(grpc::CallbackServerContext& context, Setup setup, Handlers handlers)
    : context_(context),
      setup_(std::move(setup)),
      handlers_(std::move(handlers)),
      arrived_(steady_now()) {}

std::shared_ptr<UnaryCall> UnaryCall::create(grpc::CallbackServerContext& context, Setup setup,
                                             Handlers handlers) {
  std::shared_ptr<UnaryCall> call(new UnaryCall(context, std::move(setup), std::move(handlers)));
  call->self_ = call;
  return call;
}

void UnaryCall::on_end(JobEnd end) {
  if (const auto* const error = std::get_if<Error>(&end)) {
    context_.AddTrailingMetadata(kErrorTrailer, to_trailer(to_detail(*error, setup_.request_id)));
    Finish(to_status(*error));
  } else {
    Finish(grpc::Status(grpc::StatusCode::CANCELLED, "The caller went away."));
  }
}

void UnaryCall::OnCancel() {
  cancelled_ = true;
  handlers_.on_change();
}

void UnaryCall::OnDone() {
  // The work may still hold the call, but has ended it: nothing is called any more.
  const auto last = std::move(self_);
  handlers_.on_done();
}

}  // namespace berth::worker
