#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "common/clock.h"
#include "common/fd.h"
#include "common/result.h"
#include "worker/engine/engine.h"
#include "worker/lanes/lane_runner.h"
#include "worker/service/control_hub.h"
#include "worker/service/heart.h"
#include "worker/service/listen_socket.h"
#include "worker/service/options.h"
#include "worker/service/preparer.h"

namespace grpc {
class Server;
}

namespace berth::worker {

// Makes an engine on the calling thread: the seam for engines other than libllama's.
using EngineLoader = tl::expected<std::unique_ptr<Engine>, LoadFailure> (*)(const EngineSettings&,
                                                                            LoadObserver&);

// A worker's life: loads on the context thread while the main thread starts to serve; then the
// main thread accepts connections, watches its parent and its signals, and beats the heart. Ends by
// run()'s return, which the program must follow by _exit: threads are left as they are.
class Host final : private LoadObserver, private LaneObserver {
 public:
  // Without a `choice` the load fails with its error.
  Host(Options options, ListenSocket socket, tl::expected<TemplateChoice, LoadFailure> choice,
       EngineLoader loader);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host() override;

  // Blocks the signals that end the worker, for this thread and all that it starts.
  static void block_signals();

  // Main thread. Returns the exit status: 0 told to end, 1 the load failed.
  int run();

 private:
  enum class State : std::uint8_t { kLoading, kServing, kLoadFailed };

  // Context thread.
  void context_thread();
  void load_failed(const LoadFailure& failure);
  void announce_ready(std::uint64_t load_us, std::uint64_t warmup_us);
  void on_progress(const LoadProgress& progress) override;
  void on_vocabulary(const Engine& engine) override;
  [[nodiscard]] bool cancelled() const override { return cancel_load_.load(); }

  // Any thread.
  void on_activity() override;
  void on_drained() override;
  [[nodiscard]] v1::Heartbeat heartbeat() const;
  void wake_main();

  // Main thread.
  void start_server();
  void announce_listening();
  [[nodiscard]] bool failure_settled() const;
  void accept_connections();
  // Until something happens, or 1 ms.
  void pause() const;
  int finish(int status);

  Options options_;
  ListenSocket socket_;
  EngineLoader loader_;
  std::optional<LoadFailure> refused_;  // why nothing is loaded
  LaneRunner runner_;
  Preparer preparer_;
  ControlHub hub_;
  Heart heart_;
  std::unique_ptr<class WorkerService> service_;
  std::unique_ptr<grpc::Server> server_;
  UniqueFd signals_;
  UniqueFd wake_;  // eventfd
  std::thread context_;

  std::atomic<bool> cancel_load_{false};
  std::atomic<bool> failure_sent_{false};
  std::atomic<State> state_{State::kLoading};
  std::atomic<bool> context_ended_{false};
  SteadyTime failed_at_{};  // main thread

  // Context thread.
  std::unique_ptr<Engine> engine_;
  LoadProgress told_;
  SteadyTime told_at_{};
};

}  // namespace berth::worker
