#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/core/embedding.h"
#include "supervisor/core/generation.h"
#include "supervisor/core/tokenizing.h"
#include "supervisor/rpc/forward.h"

namespace berth::rpc {

struct MemoryUse {
  std::string domain;
  std::uint64_t weights_bytes = 0;
  std::uint64_t kv_bytes = 0;
  std::uint64_t working_bytes = 0;
  std::uint64_t mapped_bytes = 0;  // of the weights, those that are the file's own pages
};

struct WorkerProgress {
  std::string phase;   // starting | weights | context | warmup
  float fraction = 0;  // 0 to 1 within the phase
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes_total = 0;
};

struct WorkerReady {
  std::string build_id;
  std::uint32_t window = 0;     // tokens
  std::uint32_t sequences = 0;  // requests at once
  std::uint32_t longest_token_bytes = 0;
  bool can_chat = false;
  std::vector<MemoryUse> memory;
  std::uint64_t load_us = 0;
  std::uint64_t warmup_us = 0;
  std::uint32_t threads = 0;
};

struct WorkerLoadFailed {
  std::string failure_class;  // permanent | resource | …
  std::string reason;         // one line
};

struct WorkerHeartbeat {
  std::uint64_t progress = 0;
  std::uint32_t active = 0;
  std::uint32_t waiting = 0;
  std::uint32_t paused = 0;  // of the active, how many wait for their clients
};

// Receives the control stream of one worker, on the core strand.
class WorkerObserver {
 public:
  WorkerObserver() = default;
  WorkerObserver(const WorkerObserver&) = delete;
  WorkerObserver& operator=(const WorkerObserver&) = delete;
  virtual ~WorkerObserver() = default;

  virtual void on_progress(const WorkerProgress& progress) = 0;
  // Before ready a request of our own to the worker begins or ends, of which it may write to its
  // log. Only of workers that are asked so.
  virtual void on_own_request() {}
  // What the last such question saw, for people: "it answered 302". At most 120 bytes, no path.
  virtual void on_probe(std::string_view /*saw*/) {}
  virtual void on_ready(const WorkerReady& ready) = 0;
  virtual void on_load_failed(const WorkerLoadFailed& failed) = 0;
  virtual void on_heartbeat(const WorkerHeartbeat& heartbeat) = 0;
  // The stream ended, whatever the cause. It is no evidence of why: the exit says that.
  virtual void on_disconnected() = 0;
};

// Receives the events of one generation, on a thread of the RPC layer or of the pool, or on the
// core strand; calls never overlap. It must not block.
class GenerateSink {
 public:
  GenerateSink() = default;
  GenerateSink(const GenerateSink&) = delete;
  GenerateSink& operator=(const GenerateSink&) = delete;
  virtual ~GenerateSink() = default;

  // Returns whether it has room for one more; false pauses the stream until GenerateCall::resume().
  virtual bool on_event(core::GenerateEvent event) = 0;
  // Last call. Success only after a DoneEvent. A connection that broke is kWorkerDied.
  virtual void on_end(Status status) = 0;
};

// One call in flight. Any thread. Destroying it cancels the work, if any is left.
class WorkerCall {
 public:
  WorkerCall() = default;
  WorkerCall(const WorkerCall&) = delete;
  WorkerCall& operator=(const WorkerCall&) = delete;
  virtual ~WorkerCall() = default;

  // Ends the work within one chunk; its end is still told.
  virtual void cancel() = 0;
  // The sink has room again. Of no meaning where there is one answer.
  virtual void resume() {}
};
using GenerateCall = WorkerCall;

// Gets the one answer of a call, once, on a thread of the RPC layer or of the pool, or on the core
// strand, never from within the call that asks. It must not block. A connection that broke is
// kWorkerDied.
template <typename Answer>
using OnAnswer = std::function<void(Result<Answer>)>;

// One that was never begun.
class NoCall : public WorkerCall {
 public:
  void cancel() override {}
};

// The connection to one worker. Core strand only, except for what starts a WorkerCall: any thread
// may do that between on_ready() and the destruction of the client.
class WorkerClient {
 public:
  WorkerClient() = default;
  WorkerClient(const WorkerClient&) = delete;
  WorkerClient& operator=(const WorkerClient&) = delete;
  virtual ~WorkerClient() = default;  // ends the streams; no callback of the observer after it

  // Starts a generation. The sink is kept alive until on_end() has returned. `deadline`: when the
  // RPC layer gives the call up; then it ends with kDeadline as soon as the sink takes what came
  // before. A call whose sink has no room ends only after resume() or cancel(), so whoever has to
  // be done in time keeps a timer of its own and cancels.
  virtual std::unique_ptr<GenerateCall> generate(const core::GenerateRequest& request,
                                                 SteadyTime deadline,
                                                 std::shared_ptr<GenerateSink> sink) = 0;
  // Calls with one answer, which is kDeadline at the deadline.
  virtual std::unique_ptr<WorkerCall> embed(const core::EmbedRequest& request, SteadyTime deadline,
                                            OnAnswer<core::Embeddings> done) = 0;
  virtual std::unique_ptr<WorkerCall> tokenize(const core::TokenizeRequest& request,
                                               SteadyTime deadline,
                                               OnAnswer<core::Tokens> done) = 0;
  virtual std::unique_ptr<WorkerCall> count_tokens(const core::TokenizeRequest& request,
                                                   SteadyTime deadline,
                                                   OnAnswer<core::TokenCount> done) = 0;
  virtual std::unique_ptr<WorkerCall> detokenize(const core::DetokenizeRequest& request,
                                                 SteadyTime deadline,
                                                 OnAnswer<core::DetokenizedText> done) = 0;
  // Passes a client's request on as it came; those who are no programs of their own (kind =
  // "command") end it with kInvalidArgument, maybe from within the call. `deadline` as above.
  virtual std::unique_ptr<WorkerCall> forward(ForwardRequest /*request*/, SteadyTime /*deadline*/,
                                              std::shared_ptr<ForwardSink> sink) {
    sink->on_end(fail(Reason::kInvalidArgument,
                      "The model is no program of its own (kind = \"command\"), which alone are "
                      "passed requests on as they come."));
    return std::make_unique<NoCall>();
  }
  // Asks a worker that is loading to give up.
  virtual void cancel_load() = 0;
  // Compute threads from its next batch on.
  virtual void set_threads(std::uint32_t threads) = 0;
};

// Makes connections; the seam of the simulation.
class WorkerConnector {
 public:
  WorkerConnector() = default;
  WorkerConnector(const WorkerConnector&) = delete;
  WorkerConnector& operator=(const WorkerConnector&) = delete;
  virtual ~WorkerConnector() = default;

  // Connects to a worker that listens on a Unix socket, and opens its control stream. Returns at
  // once; the observer must outlive the client. Core strand only.
  virtual std::unique_ptr<WorkerClient> connect(const std::string& socket_path,
                                                const std::string& instance_id,
                                                WorkerObserver& observer) = 0;
};

}  // namespace berth::rpc
