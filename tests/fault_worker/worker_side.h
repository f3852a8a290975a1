#pragma once

#include <grpcpp/server.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "berth/v1/worker.grpc.pb.h"
#include "tests/fault_worker/fault_actor.h"
#include "worker/service/listen_socket.h"
#include "worker/service/options.h"

namespace berth::fault {

// berth-worker's side of the protocol, with a deterministic answer instead of a model, and with
// everything that a worker can do wrong. Its calls run on threads of gRPC, one each. Lives as long
// as the process, which ends by _exit.
class WorkerSide final : public Side, private v1::Worker::Service {
 public:
  WorkerSide(worker::Options options, Actor& actor);
  ~WorkerSide() override;

  std::string listen() override;
  void progress(const std::string& phase, float fraction) override;
  void ready() override;
  void fail(const std::string& failure_class, const std::string& reason) override;
  void settle_failure() override;
  void close_control() override;
  void heartbeats(bool on) override;
  void freeze(bool on) override;
  void set(const Order& order) override;
  void end() override;

 private:
  class Request;
  using ControlStream = grpc::ServerReaderWriter<v1::ControlEvent, v1::ControlRequest>;

  grpc::Status Control(grpc::ServerContext* context, ControlStream* stream) override;
  grpc::Status Generate(grpc::ServerContext* context, const v1::GenerateRequest* request,
                        grpc::ServerWriter<v1::GenerateEvent>* writer) override;
  grpc::Status Embed(grpc::ServerContext* context, const v1::EmbedRequest* request,
                     v1::EmbedResponse* response) override;
  grpc::Status Tokenize(grpc::ServerContext* context, const v1::TokenizeRequest* request,
                        v1::TokenizeResponse* response) override;
  grpc::Status CountTokens(grpc::ServerContext* context, const v1::TokenizeRequest* request,
                           v1::CountTokensResponse* response) override;

  void accept_connections();
  void beat_heart();
  void on_control_request(const v1::ControlRequest& request);
  void tell(v1::ControlEvent event);
  [[nodiscard]] v1::ControlEvent heartbeat_event() const;  // with the lock held
  void count_active(int change);
  [[nodiscard]] bool is_ready() const;
  [[nodiscard]] std::string token(std::uint64_t number) const;

  const worker::Options options_;
  Actor& actor_;
  std::optional<worker::ListenSocket> socket_;
  std::unique_ptr<grpc::Server> server_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<v1::ControlEvent> events_;  // to be told
  v1::ControlEvent progress_;            // the latest
  std::optional<v1::ControlEvent> verdict_;
  bool connected_ = false;
  bool closed_ = false;  // its end of the control stream
  bool failure_sent_ = false;
  bool hearts_ = true;
  bool frozen_ = false;
  bool drain_ = false;
  std::uint64_t counter_ = 0;  // of progress
  std::uint32_t active_ = 0;

  std::string text_ = "The fault worker answers every question with the same nine words. ";
  std::uint64_t tokens_ = 0;  // 0: the text once
  Duration token_every_{};
  std::uint32_t window_ = 4096;
  std::uint32_t sequences_ = 1;
};

}  // namespace berth::fault
