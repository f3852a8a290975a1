#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>

#include "berth/v1/admin.pb.h"
#include "berth/v1/inference.pb.h"
#include "supervisor/cli/client/access.h"
#include "supervisor/cli/endpoint.h"

namespace berth::cli {

// Why a call gave no answer.
struct CallError {
  enum class Kind {
    kUnreachable,  // nobody answers there, or the connection broke
    kRefused,      // the daemon says no: `detail`
    kStopped,      // the caller's stop token or its handler ended the call
  };
  Kind kind = Kind::kUnreachable;
  // kUnreachable: one sentence, what happened.
  std::string message;
  // kRefused: what the daemon said; `reason` and `message` are never empty.
  v1::ErrorDetail detail;
  // The stream's last event was this very error, and the handler has seen it.
  bool delivered = false;
};

template <typename T>
using Reply = tl::expected<T, CallError>;

// Called with each event of a stream, on the caller's thread; false ends the call (kStopped).
template <typename Event>
using Handler = std::function<bool(const Event&)>;

// A connection to the daemon. Every call blocks the calling thread. A unary call ends within its
// deadline (kUnreachable: it did not answer in time); a stream has none, but a stop token ends it
// at any moment. One call at a time. The connection is that of connect(): where it breaks, calls
// fail with kUnreachable, and a new client must be made.
class Client {
 public:
  Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  virtual ~Client() = default;

  virtual Reply<v1::ServerInfo> server_info() = 0;
  virtual Reply<v1::ListModelsResponse> list_models() = 0;
  virtual Reply<v1::ListInstancesResponse> list_instances() = 0;
  virtual Reply<v1::EffectiveConfig> effective_config() = 0;
  virtual Reply<v1::UnloadModelResponse> unload(const v1::UnloadModelRequest& request) = 0;

  virtual Reply<v1::ModelPlan> plan(const v1::PlanModelRequest& request) = 0;
  virtual Reply<v1::Memory> memory() = 0;
  virtual Reply<v1::PinModelResponse> pin(const v1::PinModelRequest& request) = 0;
  virtual Reply<v1::UnpinModelResponse> unpin(const v1::UnpinModelRequest& request) = 0;

  virtual Reply<v1::ListFailuresResponse> list_failures(const v1::ListFailuresRequest& request) = 0;
  virtual Reply<v1::ModelReport> explain(const v1::ExplainModelRequest& request) = 0;

  virtual Reply<void> generate(const v1::GenerateRequest& request,
                               const Handler<v1::GenerateEvent>& on_event,
                               const std::stop_token& stop) = 0;
  virtual Reply<void> load(const v1::LoadModelRequest& request,
                           const Handler<v1::LoadEvent>& on_event, const std::stop_token& stop) = 0;
  virtual Reply<void> retry(const v1::LoadModelRequest& request,
                            const Handler<v1::LoadEvent>& on_event,
                            const std::stop_token& stop) = 0;
  virtual Reply<void> read_log(const v1::ReadLogRequest& request,
                               const Handler<v1::LogChunk>& on_chunk,
                               const std::stop_token& stop) = 0;
  virtual Reply<void> watch_events(const v1::WatchEventsRequest& request,
                                   const Handler<v1::Event>& on_event,
                                   const std::stop_token& stop) = 0;
};

// Connects within `connect_deadline`, and sends the key of `access` with every call; fails at once
// where the socket is not there or nobody listens on it. Errors: kUnreachable.
Reply<std::unique_ptr<Client>> connect(const Endpoint& endpoint, const Access& access,
                                       std::chrono::milliseconds connect_deadline);

}  // namespace berth::cli
