#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <mutex>

#include "berth/v1/worker.pb.h"
#include "worker/service/control_hub.h"

namespace berth::worker {

// The server's side of the control call: sends what the hub has to say, one message at a time, and
// gives the supervisor's orders to the hub. Lives until gRPC is done with it (it holds itself). The
// hub's lock is never held while a function of gRPC is called.
class ControlStream final : public grpc::ServerBidiReactor<v1::ControlRequest, v1::ControlEvent>,
                            public std::enable_shared_from_this<ControlStream> {
 public:
  static std::shared_ptr<ControlStream> create(ControlHub& hub);

  // The hub may have something to say.
  void poke();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  explicit ControlStream(ControlHub& hub) : hub_(hub) {}

  // With the lock held.
  void send_next();
  void finish(const grpc::Status& status);

  // Returns what is wrong with the greeting; OK: nothing.
  [[nodiscard]] grpc::Status check_hello(const v1::Hello& hello) const;

  ControlHub& hub_;
  std::shared_ptr<ControlStream> self_;  // until OnDone

  std::mutex mutex_;
  v1::ControlRequest request_;  // being read
  v1::ControlEvent event_;      // being sent
  bool greeted_ = false;
  bool writing_ = false;
  bool finished_ = false;
};

}  // namespace berth::worker
