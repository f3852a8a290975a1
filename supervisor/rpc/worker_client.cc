#include "supervisor/rpc/worker_client.h"

namespace berth::rpc {
namespace {

// One that was never begun.
class NoCall : public WorkerCall {
 public:
  void cancel() override {}
};

}  // namespace

std::unique_ptr<WorkerCall> WorkerClient::forward(ForwardRequest /*request*/,
                                                  SteadyTime /*deadline*/,
                                                  std::shared_ptr<ForwardSink> sink) {
  sink->on_end(fail(Reason::kInvalidArgument,
                    "The model is no program of its own (kind = \"command\"), which alone are "
                    "passed requests on as they come."));
  return std::make_unique<NoCall>();
}

}  // namespace berth::rpc
