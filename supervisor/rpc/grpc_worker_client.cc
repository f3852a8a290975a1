#include "supervisor/rpc/grpc_worker_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "berth/v1/worker.grpc.pb.h"
#include "supervisor/rpc/callback_threads.h"
#include "supervisor/rpc/error_detail.h"
#include "supervisor/rpc/worker_messages.h"

namespace berth::rpc {
namespace {

constexpr std::uint32_t kProtocol = 1;
// A prompt may be as large as a window of long tokens; the gateway bounds bodies below this.
constexpr int kMaxMessageBytes = 256 << 20;

gpr_timespec grpc_deadline(Duration left) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(std::max<std::int64_t>(left.count(), 0), GPR_TIMESPAN));
}

std::string trailer_of(const grpc::ClientContext& context) {
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto found = trailers.find(kErrorTrailer);
  if (found == trailers.end()) return {};
  return {found->second.data(), found->second.size()};
}

// The control stream of one worker. Lives from connect() until gRPC is done with it, so it may
// outlive its client: `observer_` is then null. Writes and the end of the stream are guarded by
// `mutex_`; the observer is read only on the core strand.
class ControlStream : public grpc::ClientBidiReactor<v1::ControlRequest, v1::ControlEvent>,
                      public std::enable_shared_from_this<ControlStream> {
 public:
  ControlStream(Clock& clock, WorkerObserver& observer) : clock_(clock), observer_(&observer) {}

  void start(v1::Worker::Stub& stub, const std::string& instance_id) {
    self_ = shared_from_this();
    stub.async()->Control(&context_, this);
    v1::ControlRequest hello;
    hello.mutable_hello()->set_protocol(kProtocol);
    hello.mutable_hello()->set_instance_id(instance_id);
    AddHold();  // send() may start writes from outside of a reaction until the stream has ended
    send(std::move(hello));
    StartRead(&event_);
    StartCall();
  }

  // Any thread.
  void send(v1::ControlRequest request) {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    outbox_.push_back(std::move(request));
    if (outbox_.size() == 1) StartWrite(&outbox_.front());
  }

  // Core strand.
  void abandon() {
    observer_ = nullptr;
    context_.TryCancel();
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    outbox_.pop_front();
    if (ok && !ended_ && !outbox_.empty()) StartWrite(&outbox_.front());
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      const std::lock_guard lock(mutex_);
      if (!ended_) {
        ended_ = true;
        RemoveHold();
      }
      return;
    }
    deliver(std::move(event_));
    event_.Clear();
    StartRead(&event_);
  }

  void OnDone(const grpc::Status& /*status*/) override {
    clock_.post([self = std::move(self_)] {
      if (self->observer_ != nullptr) self->observer_->on_disconnected();
    });
  }

 private:
  void deliver(v1::ControlEvent event) {
    clock_.post([self = shared_from_this(), event = std::move(event)] {
      WorkerObserver* observer = self->observer_;
      if (observer == nullptr) return;
      switch (event.event_case()) {
        case v1::ControlEvent::kProgress:
          return observer->on_progress(from_proto(event.progress()));
        case v1::ControlEvent::kReady:
          return observer->on_ready(from_proto(event.ready()));
        case v1::ControlEvent::kLoadFailed:
          return observer->on_load_failed(
              {event.load_failed().class_(), event.load_failed().reason()});
        case v1::ControlEvent::kHeartbeat:
          return observer->on_heartbeat({event.heartbeat().progress(), event.heartbeat().active(),
                                         event.heartbeat().waiting(), event.heartbeat().paused()});
        case v1::ControlEvent::kDrained:
        case v1::ControlEvent::EVENT_NOT_SET:
          return;
      }
    });
  }

  Clock& clock_;
  WorkerObserver* observer_;
  grpc::ClientContext context_;
  v1::ControlEvent event_;
  std::mutex mutex_;
  std::deque<v1::ControlRequest> outbox_;  // the front is being written
  bool ended_ = false;
  std::shared_ptr<ControlStream> self_;  // until OnDone
};

// One generation. Its reads are driven by the sink's room: after an event that filled the sink no
// read is started until resume(). A hold keeps the reactor alive while no read is outstanding.
class GenerateStream : public grpc::ClientReadReactor<v1::GenerateEvent>,
                       public std::enable_shared_from_this<GenerateStream> {
 public:
  explicit GenerateStream(std::shared_ptr<GenerateSink> sink) : sink_(std::move(sink)) {}

  void start(v1::Worker::Stub& stub, const core::GenerateRequest& request, Duration left) {
    self_ = shared_from_this();
    request_ = to_proto(request);
    context_.set_deadline(grpc_deadline(left));
    stub.async()->Generate(&context_, &request_, this);
    AddHold();
    StartRead(&event_);
    StartCall();
  }

  void cancel() {
    context_.TryCancel();
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (paused_) release();
  }

  void resume() {
    const std::lock_guard lock(mutex_);
    if (released_) return;
    if (!paused_) {
      resumed_ = true;
      return;
    }
    paused_ = false;
    StartRead(&event_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      const std::lock_guard lock(mutex_);
      return release();
    }
    bool room = true;
    if (event_.has_error()) error_ = rpc::from_proto(event_.error());
    if (std::optional<core::GenerateEvent> event = rpc::from_proto(event_)) {
      done_ = done_ || std::holds_alternative<core::DoneEvent>(*event);
      room = sink_->on_event(std::move(*event));
    }
    const std::lock_guard lock(mutex_);
    if (cancelled_) return release();
    if (room || resumed_) {
      resumed_ = false;
      StartRead(&event_);
    } else {
      paused_ = true;
    }
  }

  void OnDone(const grpc::Status& status) override {
    const std::shared_ptr<GenerateStream> self = std::move(self_);
    const std::shared_ptr<GenerateSink> sink = std::move(sink_);
    if (status.ok() && done_) return sink->on_end({});
    if (error_) return sink->on_end(fail(*error_));
    if (status.ok()) {
      return sink->on_end(fail(Reason::kInternal, "The worker ended its answer without an end."));
    }
    sink->on_end(fail(from_status(status, trailer_of(context_))));
  }

 private:
  // Lets gRPC finish the call. Under the mutex.
  void release() {
    if (released_) return;
    released_ = true;
    paused_ = false;
    RemoveHold();
  }

  std::shared_ptr<GenerateSink> sink_;
  grpc::ClientContext context_;
  v1::GenerateRequest request_;
  v1::GenerateEvent event_;
  std::optional<Error> error_;
  bool done_ = false;
  std::mutex mutex_;
  bool paused_ = false;
  bool resumed_ = false;
  bool cancelled_ = false;
  bool released_ = false;
  std::shared_ptr<GenerateStream> self_;  // until OnDone
};

class GrpcGenerateCall : public GenerateCall {
 public:
  explicit GrpcGenerateCall(std::shared_ptr<GenerateStream> stream) : stream_(std::move(stream)) {}
  ~GrpcGenerateCall() override { stream_->cancel(); }
  GrpcGenerateCall(const GrpcGenerateCall&) = delete;
  GrpcGenerateCall& operator=(const GrpcGenerateCall&) = delete;

  void cancel() override { stream_->cancel(); }
  void resume() override { stream_->resume(); }

 private:
  std::shared_ptr<GenerateStream> stream_;
};

// A call with one answer. Lives until gRPC is done with it.
template <typename Request, typename Response, typename Answer>
class UnaryCall : public std::enable_shared_from_this<UnaryCall<Request, Response, Answer>> {
 public:
  using Stub = v1::Worker::StubInterface::async_interface;
  using Method = void (Stub::*)(grpc::ClientContext*, const Request*, Response*,
                                std::function<void(grpc::Status)>);

  UnaryCall(Request request, OnAnswer<Answer> done)
      : request_(std::move(request)), done_(std::move(done)) {}

  void start(Stub& stub, Method method, Duration left) {
    context_.set_deadline(grpc_deadline(left));
    (stub.*method)(
        &context_, &request_, &response_,
        [self = this->shared_from_this()](const grpc::Status& status) { self->end(status); });
  }
  void cancel() { context_.TryCancel(); }

 private:
  void end(const grpc::Status& status) {
    const OnAnswer<Answer> done = std::move(done_);
    if (status.ok()) return done(rpc::from_proto(response_));
    done(fail(from_status(status, trailer_of(context_))));
  }

  grpc::ClientContext context_;
  const Request request_;
  Response response_;
  OnAnswer<Answer> done_;
};

template <typename Call>
class GrpcUnaryCall : public WorkerCall {
 public:
  explicit GrpcUnaryCall(std::shared_ptr<Call> call) : call_(std::move(call)) {}
  ~GrpcUnaryCall() override { call_->cancel(); }
  GrpcUnaryCall(const GrpcUnaryCall&) = delete;
  GrpcUnaryCall& operator=(const GrpcUnaryCall&) = delete;

  void cancel() override { call_->cancel(); }

 private:
  const std::shared_ptr<Call> call_;
};

class GrpcWorkerClient : public WorkerClient {
 public:
  GrpcWorkerClient(Clock& clock, const std::string& socket_path, const std::string& instance_id,
                   WorkerObserver& observer)
      : clock_(clock),
        stub_(v1::Worker::NewStub(channel_to(socket_path))),
        control_(std::make_shared<ControlStream>(clock, observer)) {
    control_->start(*stub_, instance_id);
  }
  ~GrpcWorkerClient() override { control_->abandon(); }
  GrpcWorkerClient(const GrpcWorkerClient&) = delete;
  GrpcWorkerClient& operator=(const GrpcWorkerClient&) = delete;

  std::unique_ptr<GenerateCall> generate(const core::GenerateRequest& request, SteadyTime deadline,
                                         std::shared_ptr<GenerateSink> sink) override {
    auto stream = std::make_shared<GenerateStream>(std::move(sink));
    stream->start(*stub_, request, deadline - clock_.now());
    return std::make_unique<GrpcGenerateCall>(std::move(stream));
  }

  std::unique_ptr<WorkerCall> embed(const core::EmbedRequest& request, SteadyTime deadline,
                                    OnAnswer<core::Embeddings> done) override {
    return ask(to_proto(request), &Stub::Embed, deadline, std::move(done));
  }
  std::unique_ptr<WorkerCall> tokenize(const core::TokenizeRequest& request, SteadyTime deadline,
                                       OnAnswer<core::Tokens> done) override {
    return ask(to_proto(request), &Stub::Tokenize, deadline, std::move(done));
  }
  std::unique_ptr<WorkerCall> count_tokens(const core::TokenizeRequest& request,
                                           SteadyTime deadline,
                                           OnAnswer<core::TokenCount> done) override {
    return ask(to_proto(request), &Stub::CountTokens, deadline, std::move(done));
  }
  std::unique_ptr<WorkerCall> detokenize(const core::DetokenizeRequest& request,
                                         SteadyTime deadline,
                                         OnAnswer<core::DetokenizedText> done) override {
    return ask(to_proto(request), &Stub::Detokenize, deadline, std::move(done));
  }

  void cancel_load() override {
    v1::ControlRequest request;
    request.mutable_cancel_load();
    control_->send(std::move(request));
  }

  void set_threads(std::uint32_t threads) override {
    v1::ControlRequest request;
    request.mutable_set_threads()->set_threads(threads);
    control_->send(std::move(request));
  }

 private:
  using Stub = v1::Worker::StubInterface::async_interface;

  template <typename Request, typename Response, typename Answer>
  std::unique_ptr<WorkerCall> ask(Request request,
                                  void (Stub::*method)(grpc::ClientContext*, const Request*,
                                                       Response*,
                                                       std::function<void(grpc::Status)>),
                                  SteadyTime deadline, OnAnswer<Answer> done) {
    using Call = UnaryCall<Request, Response, Answer>;
    auto call = std::make_shared<Call>(std::move(request), std::move(done));
    call->start(*stub_->async(), method, deadline - clock_.now());
    return std::make_unique<GrpcUnaryCall<Call>>(std::move(call));
  }

  static std::shared_ptr<grpc::Channel> channel_to(const std::string& socket_path) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
    arguments.SetMaxSendMessageSize(kMaxMessageBytes);
    // Its own connection, never a proxy; a worker that is gone is never connected to again.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    return grpc::CreateCustomChannel("unix:" + socket_path, grpc::InsecureChannelCredentials(),
                                     arguments);
  }

  Clock& clock_;
  std::unique_ptr<v1::Worker::Stub> stub_;
  std::shared_ptr<ControlStream> control_;
};

}  // namespace

GrpcWorkerConnector::GrpcWorkerConnector(Clock& clock) : clock_(clock) {
  keep_callback_threads();
}

std::unique_ptr<WorkerClient> GrpcWorkerConnector::connect(const std::string& socket_path,
                                                           const std::string& instance_id,
                                                           WorkerObserver& observer) {
  return std::make_unique<GrpcWorkerClient>(clock_, socket_path, instance_id, observer);
}

}  // namespace berth::rpc
