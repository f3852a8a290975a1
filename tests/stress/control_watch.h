#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "berth/v1/worker.grpc.pb.h"

namespace berth::stress {

// A worker's control stream, for as long as the worker lives: greets, waits for Ready, then listens
// on a thread of its own whether the heart beats as it should.
class ControlWatch {
 public:
  // `patience`: how long it waits for Ready, and for everything else.
  explicit ControlWatch(const std::string& socket,
                        std::chrono::milliseconds patience = std::chrono::minutes(1));
  ControlWatch(const ControlWatch&) = delete;
  ControlWatch& operator=(const ControlWatch&) = delete;
  ~ControlWatch();

  // Nothing: the model was not loaded, or not in time.
  std::optional<v1::Ready> wait_ready();
  // From now on heartbeats are expected, `set_threads` allowed.
  void listen();
  void set_threads(std::uint32_t threads);
  // A second stream must be refused.
  std::vector<std::string> try_second_stream();
  // What was wrong since the last time.
  std::vector<std::string> take_problems();
  // Whether it says in time that nobody is active or waits.
  bool wait_quiet();
  // Whether it says in time that it has drained.
  bool drain();

 private:
  using Clock = std::chrono::steady_clock;
  void run();
  void on_heartbeat(const v1::Heartbeat& beat);

  const std::chrono::milliseconds patience_;
  std::unique_ptr<v1::Worker::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ControlRequest, v1::ControlEvent>> stream_;
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable changed_;
  v1::Heartbeat last_;
  Clock::time_point last_at_;
  bool drained_ = false;
  bool ended_ = false;
  std::vector<std::string> problems_;
};

}  // namespace berth::stress
