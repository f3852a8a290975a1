#include "worker/service/worker_service.h"

#include "worker/service/control_stream.h"
#include "worker/service/generate_stream.h"

namespace berth::worker {

grpc::ServerBidiReactor<v1::ControlRequest, v1::ControlEvent>* WorkerService::Control(
    grpc::CallbackServerContext* /*context*/) {
  return ControlStream::create(hub_).get();
}

grpc::ServerWriteReactor<v1::GenerateEvent>* WorkerService::Generate(
    grpc::CallbackServerContext* context, const v1::GenerateRequest* request) {
  ++open_generations_;
  const auto stream = GenerateStream::create(*context, *request, hub_.instance_id(),
                                             {.on_change =
                                                  [this] {
                                                    preparer_.sweep();
                                                    runner_.wake();
                                                  },
                                              .on_done = [this] { --open_generations_; }});
  if (hub_.ready()) {
    preparer_.prepare(stream);
  } else {
    stream->on_end(Error(Reason::kConflict, "The model is still being loaded."));
  }
  return stream.get();  // it holds itself until gRPC is done with it
}

}  // namespace berth::worker
