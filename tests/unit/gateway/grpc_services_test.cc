#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "berth/v1/inference.grpc.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "supervisor/gateway/grpc/grpc_server.h"
#include "supervisor/gateway/grpc/health_service.h"
#include "supervisor/gateway/grpc/inference_service.h"
#include "supervisor/gateway/grpc/reflection_service.h"
#include "supervisor/process/asio_clock.h"
#include "supervisor/rpc/error_detail.h"
#include "tests/simulation/sim_world.h"

namespace berth::gateway {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using grpc::reflection::v1alpha::ServerReflection;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

constexpr auto kGenerous = std::chrono::seconds(60);

class KeyAuthenticator : public Authenticator {
 public:
  [[nodiscard]] Result<core::Caller> authenticate(const Peer& /*peer*/,
                                                  const Presented& said) const override {
    if (said.authorization == "Bearer good") return core::Caller{.tenant = "key"};
    return fail(Reason::kUnauthenticated, "No key is known here.");
  }
};

// Lets another thread wait for an event.
class AwaitedEvents : public EventSink {
 public:
  void emit(Event event) override {
    const std::lock_guard lock(mutex_);
    names_.emplace_back(event.name);
    changed_.notify_all();
  }
  bool wait(const std::string& name) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kGenerous,
                             [&] { return std::ranges::find(names_, name) != names_.end(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> names_;
};

// What a stranger's call of the server below is answered by, which holds up the core strand until
// its server is gone.
class HeldCut {
 public:
  // Notes whether it was still there when the server was not.
  std::function<Error(Error, const core::Caller&)> function() {
    auto alive = std::make_shared<int>();
    std::weak_ptr<int> weak = alive;
    return [this, weak, alive = std::move(alive)](Error error, const core::Caller&) {
      const std::weak_ptr<int> watched = weak;
      HeldCut& held = *this;
      held.entered_.set_value();
      held.gone_.get_future().wait_for(kGenerous);
      held.lived_.set_value(!watched.expired());
      return error;
    };
  }
  void wait_entered() {
    ASSERT_EQ(entered_.get_future().wait_for(kGenerous), std::future_status::ready);
  }
  void server_is_gone() { gone_.set_value(); }
  bool lived() { return lived_.get_future().get(); }

 private:
  std::promise<void> entered_;
  std::promise<void> gone_;
  std::promise<bool> lived_;
};

// The real services on the network, over a residency in which nothing happens.
class GrpcServicesTest : public testing::Test {
 protected:
  GrpcServicesTest() {
    auto demo = sim::make_model("demo");
    demo->aliases = {"gpt"};
    set_models({demo});
    serve({});
  }
  ~GrpcServicesTest() override {
    server_.reset();
    io_.stop();
    strand_.join();
  }

  void serve(std::function<Error(Error, const core::Caller&)> cut) {
    server_.reset();
    auto server = GrpcServer::listen(
        {.addresses = {"127.0.0.1:0"}}, authenticator_, std::move(cut),
        [this](const rpc::CallAccess& access) {
          GrpcServer::Services services;
          services.push_back(std::make_unique<InferenceService>(services_, access));
          services.push_back(
              std::make_unique<HealthService>(services_, access, watches_, watch_caller()));
          services.push_back(std::make_unique<ReflectionService>(
              access, std::vector<std::string>{v1::Inference::service_full_name(),
                                               Health::service_full_name()}));
          return services;
        });
    if (!server) throw std::runtime_error(server.error().message);
    server_ = *std::move(server);
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    channel_ = grpc::CreateCustomChannel(server_->addresses().front(),
                                         grpc::InsecureChannelCredentials(), arguments);
    inference_ = v1::Inference::NewStub(channel_);
    health_ = Health::NewStub(channel_);
  }

  WatchCaller watch_caller() {
    return [this](const core::Caller&, std::function<void(const Error&)> on_refused) {
      const std::lock_guard lock(mutex_);
      watched_callers_.push_back(std::move(on_refused));
      return std::make_shared<int>();
    };
  }
  int looked_up() {
    const std::lock_guard lock(mutex_);
    return looked_up_;
  }
  // A watch that has told what it found; else it is refused.
  struct OpenWatch {
    std::unique_ptr<grpc::ClientContext> context;
    std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> stream;
    bool told = false;
  };
  OpenWatch watch(const HealthCheckRequest& request, bool with_key = true) {
    OpenWatch made{context(with_key), {}};
    made.stream = health_->Watch(made.context.get(), request);
    HealthCheckResponse response;
    made.told = made.stream->Read(&response);
    return made;
  }

  void set_models(std::vector<std::shared_ptr<const catalog::Model>> models) {
    const std::lock_guard lock(mutex_);
    catalog_ = std::make_shared<catalog::Catalog>(std::move(models));
  }
  static std::unique_ptr<grpc::ClientContext> context(bool with_key = true) {
    auto made = std::make_unique<grpc::ClientContext>();
    made->set_deadline(std::chrono::system_clock::now() + kGenerous);
    if (with_key) made->AddMetadata("authorization", "Bearer good");
    return made;
  }
  static v1::ErrorDetail detail_of(const grpc::ClientContext& context) {
    const auto& trailers = context.GetServerTrailingMetadata();
    const auto found = trailers.find(rpc::kErrorTrailer);
    v1::ErrorDetail detail;
    EXPECT_NE(found, trailers.end()) << "no trailer";
    if (found == trailers.end()) return detail;
    EXPECT_TRUE(
        detail.ParseFromArray(found->second.data(), static_cast<int>(found->second.size())));
    return detail;
  }
  grpc::Status send_bytes(grpc::ClientContext& with, const char* method, const std::string& bytes) {
    grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub(channel_);
    grpc::CompletionQueue queue;
    const grpc::Slice slice(bytes);
    const grpc::ByteBuffer message(&slice, 1);
    const auto call = stub.PrepareUnaryCall(&with, method, message, &queue);
    call->StartCall();
    grpc::ByteBuffer answer;
    grpc::Status status;
    call->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    return status;
  }
  std::pair<grpc::Status, HealthCheckResponse::ServingStatus> check(const std::string& service,
                                                                    bool with_key = true) {
    const auto with = context(with_key);
    HealthCheckRequest request;
    request.set_service(service);
    HealthCheckResponse response;
    const grpc::Status status = health_->Check(with.get(), request, &response);
    return {status, response.status()};
  }

  sim::SimWorld world_;
  residency::Residency residency_{world_.environment()};
  boost::asio::io_context io_;
  process::AsioClock clock_{io_};
  std::mutex mutex_;
  std::shared_ptr<const catalog::Catalog> catalog_;
  int looked_up_ = 0;
  std::vector<std::function<void(const Error&)>> watched_callers_;
  std::atomic<bool> ready_{true};
  AwaitedEvents events_;
  residency::RequestBook requests_{clock_, events_};
  const residency::Services services_{clock_,
                                      world_.ids,
                                      events_,
                                      residency_,
                                      [this] {
                                        const std::lock_guard lock(mutex_);
                                        ++looked_up_;
                                        return catalog_;
                                      },
                                      requests_};
  HealthWatches watches_{services_, [this] { return ready_.load(); }};
  const KeyAuthenticator authenticator_;
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Inference::Stub> inference_;
  std::unique_ptr<Health::Stub> health_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      io_.get_executor()};
  std::thread strand_{[this] { io_.run(); }};
};

TEST_F(GrpcServicesTest, S6_WithoutAKeyNothingIsTold) {
  const auto list = context(false);
  v1::ListModelsResponse models;
  EXPECT_EQ(inference_->ListModels(list.get(), {}, &models).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(detail_of(*list).reason(), "unauthenticated");

  const auto embed = context(false);
  v1::EmbedResponse embeddings;
  EXPECT_EQ(inference_->Embed(embed.get(), {}, &embeddings).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_FALSE(detail_of(*embed).request_id().empty());

  const auto generate = context(false);
  const auto stream = inference_->Generate(generate.get(), {});
  v1::GenerateEvent event;
  ASSERT_TRUE(stream->Read(&event));
  EXPECT_EQ(event.error().reason(), "unauthenticated");
  EXPECT_FALSE(stream->Read(&event));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(GrpcServicesTest, S6_AClientSeesNoPaths) {
  const auto list = context();
  v1::ListModelsResponse models;
  ASSERT_TRUE(inference_->ListModels(list.get(), {}, &models).ok());
  ASSERT_EQ(models.models_size(), 1);
  EXPECT_EQ(models.models(0).name(), "demo");
  EXPECT_TRUE(models.models(0).path().empty());
}

TEST_F(GrpcServicesTest, WrongRequestsSayWhatAndWhere) {
  const auto embed = context();
  v1::EmbedRequest request;
  request.set_model("demo");
  request.set_request_id("mine-1");
  request.add_inputs()->set_text("a");
  request.add_inputs();
  v1::EmbedResponse embeddings;
  const grpc::Status status = inference_->Embed(embed.get(), request, &embeddings);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_of(*embed).param(), "inputs[1]");

  const auto tokenize = context();
  v1::TokenizeRequest text;
  text.set_model("demo");
  text.set_text("a\xff");
  v1::TokenizeResponse tokens;
  EXPECT_EQ(inference_->Tokenize(tokenize.get(), text, &tokens).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_of(*tokenize).param(), "text");

  const auto count = context();
  text.set_model("nowhere");
  text.set_text("a");
  v1::CountTokensResponse counted;
  EXPECT_EQ(inference_->CountTokens(count.get(), text, &counted).error_code(),
            grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(detail_of(*count).reason(), "unknown_model");
  EXPECT_FALSE(detail_of(*count).request_id().empty());

  const auto back = context();
  v1::DetokenizeRequest ids;
  ids.set_model("demo");
  ids.add_ids(-1);
  v1::DetokenizeResponse texts;
  EXPECT_EQ(inference_->Detokenize(back.get(), ids, &texts).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_of(*back).param(), "ids");
}

// Nothing loads here, so that each of them waits.
TEST_F(GrpcServicesTest, T31_AClientThatGoesEndsItsRequestWhileItWaits) {
  v1::TokenizeRequest request;
  request.set_model("demo");
  request.set_text("a");
  const auto cancelled = context();
  v1::TokenizeResponse response;
  std::promise<grpc::Status> ended;
  inference_->async()->Tokenize(cancelled.get(), &request, &response,
                                [&](grpc::Status status) { ended.set_value(std::move(status)); });
  cancelled->TryCancel();
  EXPECT_EQ(ended.get_future().get().error_code(), grpc::StatusCode::CANCELLED);

  const auto limited = context();
  limited->set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
  v1::TokenizeResponse late;
  EXPECT_EQ(inference_->Tokenize(limited.get(), request, &late).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(events_.wait("request.cancelled"));
}

TEST_F(GrpcServicesTest, AMessageThatCannotBeReadIsSaidToBe) {
  for (const char* method : {"/berth.v1.Inference/Tokenize", "/berth.v1.Inference/Generate"}) {
    const auto with = context();
    const grpc::Status status = send_bytes(*with, method, std::string("\x0a\x02\xff\xfe", 4));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
    EXPECT_NE(status.error_message().find(method), std::string::npos) << status.error_message();
    EXPECT_EQ(detail_of(*with).reason(), "invalid_argument");
  }
}

TEST_F(GrpcServicesTest, AnUnknownMethodIsSaidToBe) {
  for (const char* method : {"/berth.v1.Inference/Nope", "/berth.v1.Worker/Generate", "/x/y"}) {
    const auto with = context();
    const grpc::Status status = send_bytes(*with, method, {});
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << method;
    EXPECT_NE(status.error_message().find("no method"), std::string::npos) << method;
    EXPECT_EQ(detail_of(*with).reason(), "method_not_allowed");
  }
}

TEST_F(GrpcServicesTest, AModelWithoutEmbeddingsSaysHowItGetsThem) {
  const auto embed = context();
  v1::EmbedRequest request;
  request.set_model("gpt");
  request.add_inputs()->set_text("a");
  v1::EmbedResponse embeddings;
  const grpc::Status status = inference_->Embed(embed.get(), request, &embeddings);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("embeddings = true"), std::string::npos);
  EXPECT_TRUE(world_.workers.all().empty());
}

// A server of one peer's ends while others go on, and with it the calls, of which the requests know
// only a moment later.
TEST_F(GrpcServicesTest, ARequestMayFailAfterItsServerHasGone) {
  v1::TokenizeRequest tokenize;
  tokenize.set_model("nowhere");
  tokenize.set_text("a");
  HeldCut unary;
  serve(unary.function());
  const auto with = context();
  v1::TokenizeResponse response;
  std::promise<void> ended;
  inference_->async()->Tokenize(with.get(), &tokenize, &response,
                                [&](const grpc::Status& /*status*/) { ended.set_value(); });
  unary.wait_entered();
  server_.reset();
  unary.server_is_gone();
  EXPECT_TRUE(unary.lived());
  ended.get_future().wait();

  v1::GenerateRequest generate;
  generate.set_model("nowhere");
  generate.set_prompt("a");
  HeldCut streamed;
  serve(streamed.function());
  const auto stream_with = context();
  const auto stream = inference_->Generate(stream_with.get(), generate);
  streamed.wait_entered();
  server_.reset();
  streamed.server_is_gone();
  EXPECT_TRUE(streamed.lived());
  EXPECT_FALSE(stream->Finish().ok());
}

TEST_F(GrpcServicesTest, T94_LiveIsNotReadyIsNotModelReady) {
  EXPECT_EQ(check("", false).second, HealthCheckResponse::SERVING) << "needs no key";
  EXPECT_EQ(check("berth.v1.Inference").second, HealthCheckResponse::SERVING);
  EXPECT_EQ(check("demo").second, HealthCheckResponse::NOT_SERVING) << "it is not loaded";
  EXPECT_EQ(check("gpt").second, HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(check("nowhere").first.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(check("demo", false).first.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  ready_ = false;
  EXPECT_EQ(check("").second, HealthCheckResponse::NOT_SERVING);
  EXPECT_TRUE(world_.workers.all().empty()) << "asking woke a model";
}

TEST_F(GrpcServicesTest, T94_AWatchTellsChangesAndNothingElse) {
  const auto with = context();
  HealthCheckRequest request;
  request.set_service("later");
  const auto watch = health_->Watch(with.get(), request);
  HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVICE_UNKNOWN);
  watches_.changed();  // of something else
  set_models({sim::make_model("later")});
  watches_.changed();
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  with->TryCancel();
  EXPECT_FALSE(watch->Read(&response));
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::CANCELLED);
  watches_.changed();
}

TEST_F(GrpcServicesTest, T94_AWatchOfTheServerEndsWithItsReadiness) {
  const auto with = context(false);
  const auto watch = health_->Watch(with.get(), HealthCheckRequest());
  HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  ready_ = false;
  watches_.changed();
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
}

TEST_F(GrpcServicesTest, S6_StrangersWhoWatchLeavePlacesForOthers) {
  std::vector<OpenWatch> strangers;
  for (std::size_t i = 0; i < HealthWatches::kMostOfStrangers; ++i) {
    strangers.push_back(watch({}, false));
    ASSERT_TRUE(strangers.back().told) << i;
  }
  OpenWatch refused = watch({}, false);
  EXPECT_FALSE(refused.told);
  EXPECT_EQ(refused.stream->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(detail_of(*refused.context).reason(), "queue_full");
  EXPECT_EQ(check("", false).second, HealthCheckResponse::SERVING);

  std::vector<OpenWatch> of_tenant;
  for (std::size_t i = 0; i < HealthWatches::kMostOfTenant; ++i) {
    of_tenant.push_back(watch({}));
    ASSERT_TRUE(of_tenant.back().told) << i;
  }
  refused = watch({});
  EXPECT_FALSE(refused.told);
  EXPECT_EQ(refused.stream->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);

  strangers.front().context->TryCancel();
  // The server hears of it later than its client.
  const auto until = std::chrono::steady_clock::now() + kGenerous;
  while (!watch({}, false).told) ASSERT_LT(std::chrono::steady_clock::now(), until);
  for (const OpenWatch& one : strangers) one.context->TryCancel();
  for (const OpenWatch& one : of_tenant) one.context->TryCancel();
}

TEST_F(GrpcServicesTest, S6_ALongHealthRequestIsNotKept) {
  HealthCheckRequest named;
  named.set_service(std::string(2000, 'a'));
  HealthCheckRequest padded;
  padded.GetReflection()->MutableUnknownFields(&padded)->AddLengthDelimited(15,
                                                                            std::string(2000, 'a'));
  for (const HealthCheckRequest& request : {named, padded}) {
    const auto with = context();
    HealthCheckResponse response;
    EXPECT_EQ(health_->Check(with.get(), request, &response).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(detail_of(*with).param(), "service");
    const OpenWatch refused = watch(request);
    EXPECT_FALSE(refused.told);
    if (refused.told) refused.context->TryCancel();
    EXPECT_EQ(refused.stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
}

TEST_F(GrpcServicesTest, S6_AWatchEndsWithItsKey) {
  HealthCheckRequest request;
  request.set_service("demo");
  const OpenWatch open = watch(request);
  ASSERT_TRUE(open.told);
  {
    const std::lock_guard lock(mutex_);
    ASSERT_EQ(watched_callers_.size(), 1U);
    watched_callers_.front()(Error(Reason::kUnauthenticated, "This key is not known any more."));
  }
  HealthCheckResponse response;
  EXPECT_FALSE(open.stream->Read(&response));
  EXPECT_EQ(open.stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(detail_of(*open.context).reason(), "unauthenticated");
}

TEST_F(GrpcServicesTest, AChangeIsLookedUpOnceForAllWhoWatch) {
  HealthCheckRequest request;
  request.set_service("demo");
  std::vector<OpenWatch> open;
  for (int i = 0; i < 10; ++i) {
    open.push_back(watch(request));
    ASSERT_TRUE(open.back().told);
  }
  const int before = looked_up();
  watches_.changed();
  EXPECT_EQ(check("demo").second, HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(looked_up() - before, 2) << "the check's is one";
  for (const OpenWatch& one : open) one.context->TryCancel();
}

TEST_F(GrpcServicesTest, ReflectionTellsWhatIsOfferedAndNothingElse) {
  const auto reflection = ServerReflection::NewStub(channel_);
  const auto with = context();
  const auto stream = reflection->ServerReflectionInfo(with.get());
  ServerReflectionRequest request;
  ServerReflectionResponse response;
  const auto ask = [&] { return stream->Write(request) && stream->Read(&response); };

  request.set_list_services("*");
  ASSERT_TRUE(ask());
  std::vector<std::string> names;
  for (const auto& service : response.list_services_response().service()) {
    names.push_back(service.name());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"berth.v1.Inference", "grpc.health.v1.Health",
                                             "grpc.reflection.v1alpha.ServerReflection"}));

  request.set_file_containing_symbol("berth.v1.Inference.Tokenize");
  ASSERT_TRUE(ask());
  EXPECT_EQ(response.original_request().file_containing_symbol(), "berth.v1.Inference.Tokenize");
  std::vector<std::string> files;
  for (const std::string& bytes : response.file_descriptor_response().file_descriptor_proto()) {
    google::protobuf::FileDescriptorProto file;
    ASSERT_TRUE(file.ParseFromString(bytes));
    files.push_back(file.name());
  }
  ASSERT_FALSE(files.empty());
  EXPECT_EQ(files.front(), "berth/v1/inference.proto");
  EXPECT_NE(std::ranges::find(files, "berth/v1/error.proto"), files.end()) << "what it imports";

  request.set_file_by_filename("grpc/health/v1/health.proto");
  ASSERT_TRUE(ask());
  EXPECT_EQ(response.file_descriptor_response().file_descriptor_proto_size(), 1);
  for (const char* name : {"berth.v1.Worker", "nothing.Here"}) {
    request.set_file_containing_symbol(name);
    ASSERT_TRUE(ask());
    EXPECT_EQ(response.error_response().error_code(), grpc::StatusCode::NOT_FOUND) << name;
  }
  stream->WritesDone();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(GrpcServicesTest, ReflectionRefusesStrangersAndQuestionsWithoutEnd) {
  const auto reflection = ServerReflection::NewStub(channel_);
  ServerReflectionResponse response;
  const auto unknown = context(false);
  const auto refused = reflection->ServerReflectionInfo(unknown.get());
  EXPECT_FALSE(refused->Read(&response));
  EXPECT_EQ(refused->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(detail_of(*unknown).reason(), "unauthenticated");

  const auto with = context();
  const auto stream = reflection->ServerReflectionInfo(with.get());
  ServerReflectionRequest request;
  request.set_file_by_filename(std::string(20000, 'a'));
  ASSERT_TRUE(stream->Write(request));
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

// Each would hold one of the program, if it were answered as gRPC answers it.
TEST_F(GrpcServicesTest, OpenReflectionStreamsHoldNoThreads) {
  const auto threads = [] {
    const auto tasks = std::filesystem::directory_iterator("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const auto reflection = ServerReflection::NewStub(channel_);
  const auto before = threads();
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<
      std::unique_ptr<grpc::ClientReaderWriter<ServerReflectionRequest, ServerReflectionResponse>>>
      streams;
  ServerReflectionRequest request;
  request.set_list_services("*");
  ServerReflectionResponse response;
  for (int i = 0; i < 100; ++i) {
    contexts.push_back(context());
    streams.push_back(reflection->ServerReflectionInfo(contexts.back().get()));
    ASSERT_TRUE(streams.back()->Write(request));
    ASSERT_TRUE(streams.back()->Read(&response));
  }
  EXPECT_LT(threads() - before, 50);
  for (const auto& with : contexts) with->TryCancel();
}

}  // namespace
}  // namespace berth::gateway
