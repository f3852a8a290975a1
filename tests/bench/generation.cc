#include "tests/bench/generation.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

namespace berth::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::seconds kConnectWait{10};
constexpr std::chrono::seconds kCallDeadline{600};

// Service is Inference or Worker: both have the same Generate.
template <typename Service>
class RealInference final : public Inference {
 public:
  explicit RealInference(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(Service::NewStub(channel)) {}

  Result<Measured> generate(const berth::v1::GenerateRequest& request) override {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCallDeadline);
    Measured measured;
    bool done = false;
    const SteadyClock::time_point start = SteadyClock::now();
    const auto reader = stub_->Generate(&context, request);
    berth::v1::GenerateEvent event;
    while (reader->Read(&event)) {
      const Nanoseconds since = SteadyClock::now() - start;
      if (event.has_token()) {
        if (measured.first_token == Nanoseconds{}) measured.first_token = since;
        measured.last_token = since;
        measured.text += event.token().text();
      } else if (event.has_done()) {
        done = true;
        measured.tokens = event.done().usage().completion_tokens();
      }
    }
    const grpc::Status status = reader->Finish();
    measured.whole = SteadyClock::now() - start;
    if (!status.ok()) return fail(Reason::kInternal, status.error_message());
    if (!done) return fail(Reason::kInternal, "the stream ended without `done`");
    return measured;
  }

 private:
  std::unique_ptr<typename Service::Stub> stub_;
};

template <typename Service>
Result<std::unique_ptr<Inference>> connect(const std::string& endpoint) {
  auto channel = grpc::CreateChannel(endpoint, grpc::InsecureChannelCredentials());
  if (!channel->WaitForConnected(std::chrono::system_clock::now() + kConnectWait)) {
    return fail(Reason::kDeadline, "no connection to " + endpoint + " within 10 s");
  }
  return std::make_unique<RealInference<Service>>(channel);
}

}  // namespace

berth::v1::GenerateRequest chat_request(std::string_view model, std::string_view question,
                                        std::uint32_t max_tokens) {
  const boost::json::array messages = {{{"role", "user"}, {"content", question}}};
  berth::v1::GenerateRequest request;
  request.set_model(std::string(model));
  request.mutable_chat()->set_messages_json(boost::json::serialize(messages));
  request.mutable_sampling()->set_temperature(0);
  request.set_max_tokens(max_tokens);
  return request;
}

Result<std::unique_ptr<Inference>> Inference::to_berthd(const std::string& endpoint) {
  return connect<berth::v1::Inference>(endpoint);
}

Result<std::unique_ptr<Inference>> Inference::to_worker(const std::string& endpoint) {
  return connect<berth::v1::Worker>(endpoint);
}

}  // namespace berth::bench
