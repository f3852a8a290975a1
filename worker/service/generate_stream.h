#pragma once

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "berth/v1/inference.pb.h"
#include "worker/lanes/job.h"
#include "worker/service/answer_sink.h"
#include "worker/service/pauses.h"
#include "worker/service/pending_call.h"
#include "worker/service/piece_buffer.h"

namespace grpc {
class CallbackServerContext;
}

namespace berth::worker {

// The server's side of one Generate call. Takes a job's answer from the context thread and sends
// it; while one message is being sent, the tokens that come meanwhile gather in the next one, up to
// a bound, at which the job pauses. gRPC's threads call the On… functions.
//
// Lives until gRPC is done with it (it holds itself) and the job has ended (the job's sink holds
// it). After create(), on_end() must be called exactly once, else the call never ends.
class GenerateStream final : public grpc::ServerWriteReactor<v1::GenerateEvent>,
                             public AnswerReceiver,
                             public PendingCall,
                             public std::enable_shared_from_this<GenerateStream> {
 public:
  struct Handlers {
    // The stream was cancelled or has room again.
    std::function<void()> on_change;
    // The call is over and its last word sent.
    std::function<void()> on_done;
  };
  // gRPC's threads call the handlers. `pauses` outlives the stream and its job.
  static std::shared_ptr<GenerateStream> create(grpc::CallbackServerContext& context,
                                                const v1::GenerateRequest& request,
                                                std::string instance_id, Pauses& pauses,
                                                Handlers handlers);

  // Valid until on_end().
  [[nodiscard]] const v1::GenerateRequest& request() const { return request_; }
  [[nodiscard]] SteadyTime arrived() const override { return arrived_; }
  [[nodiscard]] bool needs_template() const override { return request_.has_chat(); }
  [[nodiscard]] std::optional<std::uint64_t> deadline_ms() const override;
  [[nodiscard]] std::unique_ptr<CallWork> take_work() override;

  void on_prefill(std::uint32_t done, std::uint32_t total) override;
  void on_piece(v1::Token& piece) override;
  void on_end(JobEnd end) override;
  [[nodiscard]] bool has_room() const override;
  [[nodiscard]] bool cancelled() const override {
    return cancelled_.load(std::memory_order_relaxed);
  }

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  GenerateStream(grpc::CallbackServerContext& context, const v1::GenerateRequest& request,
                 std::string instance_id, Pauses& pauses, Handlers handlers);

  // All with the lock held.
  void send_next();
  void send_end();
  void update_room();
  v1::Done to_done(const JobResult& result) const;

  grpc::CallbackServerContext& context_;
  const v1::GenerateRequest& request_;
  const std::string instance_id_;
  Pauses& pauses_;
  const Handlers handlers_;
  const SteadyTime arrived_;
  std::shared_ptr<GenerateStream> self_;  // until OnDone
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> room_{true};

  std::mutex mutex_;
  v1::GenerateEvent wire_;  // being sent
  bool writing_ = false;
  bool finished_ = false;
  bool paused_ = false;  // counted in pauses_
  bool has_prefill_ = false;
  v1::Prefill prefill_;  // the latest, not sent yet
  PieceBuffer pending_;  // not sent yet
  bool called_tools_ = false;
  std::unique_ptr<JobEnd> end_;  // not sent yet
};

}  // namespace berth::worker
