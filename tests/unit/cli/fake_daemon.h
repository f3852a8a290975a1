#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "berth/v1/admin.grpc.pb.h"
#include "berth/v1/inference.grpc.pb.h"

namespace berth::cli::test {

// A refusal as berthd sends it: status and trailer.
grpc::Status refuse(grpc::ServerContext& context, grpc::StatusCode code,
                    const v1::ErrorDetail& detail);
v1::ErrorDetail detail(std::string reason, std::string message);

// Waits until the caller has cancelled the call; false when it did not within a generous time.
bool wait_cancelled(const grpc::ServerContext& context);

// A directory of its own under the system's one for temporary files, removed at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A daemon with scripted answers that listens on a Unix socket in a directory of its own. The
// scripts are set before the first call and run on threads of gRPC.
class FakeDaemon {
 public:
  template <typename Request, typename Reply>
  using Unary = std::function<grpc::Status(grpc::ServerContext&, const Request&, Reply&)>;
  template <typename Request, typename Event>
  using Stream =
      std::function<grpc::Status(grpc::ServerContext&, const Request&, grpc::ServerWriter<Event>&)>;

  FakeDaemon();
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;
  ~FakeDaemon();

  // "unix:PATH"
  [[nodiscard]] std::string endpoint() const;
  [[nodiscard]] const std::string& socket() const { return socket_; }
  // Ends the server: open streams break. It can be called from a script's own thread only by
  // another thread.
  void stop();
  // Listens again on the same socket.
  void start();

  Unary<v1::GetServerInfoRequest, v1::ServerInfo> server_info;
  Unary<v1::ListModelsRequest, v1::ListModelsResponse> list_models;
  Unary<v1::ListInstancesRequest, v1::ListInstancesResponse> list_instances;
  Unary<v1::UnloadModelRequest, v1::UnloadModelResponse> unload;
  Unary<v1::PlanModelRequest, v1::ModelPlan> plan;
  Unary<v1::GetMemoryRequest, v1::Memory> memory;
  Unary<v1::PinModelRequest, v1::PinModelResponse> pin;
  Unary<v1::UnpinModelRequest, v1::UnpinModelResponse> unpin;
  Unary<v1::GetConfigRequest, v1::EffectiveConfig> config;
  Unary<v1::ListFailuresRequest, v1::ListFailuresResponse> list_failures;
  Unary<v1::ExplainModelRequest, v1::ModelReport> explain;
  Stream<v1::GenerateRequest, v1::GenerateEvent> generate;
  Stream<v1::LoadModelRequest, v1::LoadEvent> load;
  Stream<v1::LoadModelRequest, v1::LoadEvent> retry;
  Stream<v1::ReadLogRequest, v1::LogChunk> read_log;
  Stream<v1::WatchEventsRequest, v1::Event> watch_events;

 private:
  class AdminService;
  class InferenceService;

  TemporaryDirectory directory_;
  std::string socket_;
  std::unique_ptr<AdminService> admin_;
  std::unique_ptr<InferenceService> inference_;
  std::unique_ptr<grpc::Server> server_;
};

// Events of a generation.
v1::GenerateEvent token(std::string text);
v1::GenerateEvent done(std::string finish_reason = "stop");
v1::GenerateEvent loading(std::string phase, float fraction);
v1::Model model(std::string name, bool can_chat = true);

}  // namespace berth::cli::test
