#pragma once

#include <atomic>

#include "berth/v1/worker.grpc.pb.h"
#include "worker/lanes/lane_runner.h"
#include "worker/service/control_hub.h"
#include "worker/service/preparer.h"

namespace berth::worker {

// berth.v1.Worker. Owns nothing; gRPC's threads.
class WorkerService final : public v1::Worker::CallbackService {
 public:
  WorkerService(ControlHub& hub, Preparer& preparer, LaneRunner& runner)
      : hub_(hub), preparer_(preparer), runner_(runner) {}

  // Generations whose last word is not sent yet. Any thread.
  [[nodiscard]] int open_generations() const { return open_generations_.load(); }

  grpc::ServerBidiReactor<v1::ControlRequest, v1::ControlEvent>* Control(
      grpc::CallbackServerContext* context) override;
  grpc::ServerWriteReactor<v1::GenerateEvent>* Generate(
      grpc::CallbackServerContext* context, const v1::GenerateRequest* request) override;

 private:
  ControlHub& hub_;
  Preparer& preparer_;
  LaneRunner& runner_;
  std::atomic<int> open_generations_{0};
};

}  // namespace berth::worker
