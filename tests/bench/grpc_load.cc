#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/client_callback.h>

#include <condition_variable>
#include <memory>
#include <mutex>

#include "berth/v1/inference.grpc.pb.h"
#include "berth/v1/worker.grpc.pb.h"
#include "tests/bench/request_load.h"

namespace berth::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::seconds kConnectWait{10};

// What the calls share; they end on gRPC's threads.
struct Load {
  berth::v1::GenerateRequest request;
  std::chrono::system_clock::time_point deadline;
  std::mutex mutex;
  std::condition_variable changed;
  std::uint32_t to_send = 0;
  std::uint32_t unanswered = 0;
  std::uint32_t running = 0;
  std::string problem;
  std::vector<double> latency_us;
};

template <typename Stub>
void next_call(Stub& stub, Load& load);

// One call; deletes itself when it is over, and starts the next one of its lane.
template <typename Stub>
class Call final : public grpc::ClientReadReactor<berth::v1::GenerateEvent> {
 public:
  Call(Stub& stub, Load& load) : stub_(stub), load_(load) {
    context_.set_deadline(load.deadline);
    stub.async()->Generate(&context_, &load.request, this);
    StartRead(&event_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    done_ = done_ || event_.has_done();
    StartRead(&event_);
  }

  void OnDone(const grpc::Status& status) override {
    const std::chrono::duration<double, std::micro> took = SteadyClock::now() - sent_;
    {
      const std::scoped_lock lock(load_.mutex);
      load_.latency_us.push_back(took.count());
      --load_.unanswered;
      if (!status.ok() || !done_) {
        load_.problem = status.ok() ? "a stream without `done`" : status.error_message();
        load_.to_send = 0;
      }
    }
    next_call(stub_, load_);
    {
      const std::scoped_lock lock(load_.mutex);
      --load_.running;
      load_.changed.notify_all();
    }
    delete this;
  }

 private:
  Stub& stub_;
  Load& load_;
  grpc::ClientContext context_;
  berth::v1::GenerateEvent event_;
  SteadyClock::time_point sent_ = SteadyClock::now();
  bool done_ = false;
};

template <typename Stub>
void next_call(Stub& stub, Load& load) {
  {
    const std::scoped_lock lock(load.mutex);
    if (load.to_send == 0) return;
    --load.to_send;
    ++load.running;
  }
  new Call<Stub>(stub, load);  // NOLINT(cppcoreguidelines-owning-memory): it deletes itself
}

template <typename Service>
Result<LoadResult> run(const std::string& endpoint, const LoadOptions& options) {
  const auto channel = grpc::CreateChannel(endpoint, grpc::InsecureChannelCredentials());
  if (!channel->WaitForConnected(std::chrono::system_clock::now() + kConnectWait)) {
    return fail(Reason::kDeadline, "no connection to " + endpoint + " within 10 s");
  }
  const auto stub = Service::NewStub(channel);
  Load load;
  load.request.set_model(options.model);
  load.request.set_prompt(std::string(kShortPrompt));
  load.request.mutable_sampling()->set_temperature(0);
  load.request.set_max_tokens(1);
  load.deadline = std::chrono::system_clock::now() + options.time;
  load.to_send = load.unanswered = options.requests;
  const auto began = SteadyClock::now();
  for (std::uint32_t i = 0; i < options.lanes; ++i) next_call(*stub, load);
  std::unique_lock lock(load.mutex);
  // Every call ends by its deadline.
  load.changed.wait(lock, [&load] { return load.running == 0; });
  const std::chrono::duration<double, std::micro> wall = SteadyClock::now() - began;
  if (!load.problem.empty()) return fail(Reason::kInternal, load.problem);
  return LoadResult{wall.count(), std::move(load.latency_us)};
}

}  // namespace

Result<LoadResult> grpc_load(const std::string& endpoint, Service service,
                             const LoadOptions& options) {
  return service == Service::kBerthd ? run<berth::v1::Inference>(endpoint, options)
                                     : run<berth::v1::Worker>(endpoint, options);
}

}  // namespace berth::bench
