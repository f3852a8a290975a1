#include <gtest/gtest.h>

#include <grpcpp/grpcpp.h>
#include <stdlib.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "supervisor/admin/grpc/admin_service.h"
#include "supervisor/process/asio_clock.h"
#include "supervisor/rpc/error_detail.h"
#include "tests/simulation/sim_world.h"

namespace berth::admin {
namespace {

constexpr auto kGenerous = std::chrono::seconds(60);

core::FailureRecord failure_of_demo() {
  core::FailureRecord record;
  record.id = Uuid::parse("01900000-0000-7000-8000-000000000001");
  record.instance = Uuid::parse("01900000-0000-7000-8000-000000000002");
  record.model = "demo";
  record.failure_class = core::FailureClass::kPermanent;
  record.reason = "unknown model architecture: 'x'";
  record.command = {"secret-command"};
  record.environment = {"TOKEN=secret-token"};
  record.log_tail = {"secret-line"};
  return record;
}

// The real service on a Unix socket and on TCP, over a residency against which one failure stands.
class RolesTest : public testing::Test {
 protected:
  RolesTest() {
    std::string name = (std::filesystem::temp_directory_path() / "badm.XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    directory_ = name;
    world_.store.put_failure(failure_of_demo());
    residency_.restore_failures([] {});
    world_.clock.settle();
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + directory_ + "/s", grpc::InsecureServerCredentials());
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~RolesTest() override {
    server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
    io_.stop();
    strand_.join();
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  std::unique_ptr<v1::Admin::Stub> admin() { return stub("unix:" + directory_ + "/s"); }
  std::unique_ptr<v1::Admin::Stub> client() { return stub("127.0.0.1:" + std::to_string(port_)); }

  // Whatever place there is for one who watches without a key.
  std::vector<std::unique_ptr<EventHub::Place>> take_all_places() {
    std::vector<std::unique_ptr<EventHub::Place>> places;
    while (auto place = hub_.take_place(core::Caller{}.tenant)) {
      places.push_back(*std::move(place));
    }
    return places;
  }

  void emit_stopping() { hub_.emit_typed(events::ServerStopping{}); }

  static v1::ListFailuresResponse list(v1::Admin::Stub& stub, const std::string& model = {}) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kGenerous);
    v1::ListFailuresRequest request;
    request.set_model(model);
    v1::ListFailuresResponse reply;
    const grpc::Status status = stub.ListFailures(&context, request, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply;
  }
  static grpc::Status load(v1::Admin::Stub& stub, const std::string& model, bool by_retry) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kGenerous);
    v1::LoadModelRequest request;
    request.set_model(model);
    const auto reader =
        by_retry ? stub.RetryModel(&context, request) : stub.LoadModel(&context, request);
    v1::LoadEvent event;
    while (reader->Read(&event)) {
    }
    return reader->Finish();
  }

 private:
  static std::unique_ptr<v1::Admin::Stub> stub(const std::string& target) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    if (target.starts_with("unix:")) arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    return v1::Admin::NewStub(
        grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments));
  }

  std::string directory_;
  sim::SimWorld world_;
  residency::Residency residency_{world_.environment()};
  boost::asio::io_context io_;
  process::AsioClock clock_{io_};
  EventHub hub_{clock_, 0};
  residency::RequestBook requests_{clock_, hub_};
  const std::shared_ptr<const catalog::Catalog> catalog_ = std::make_shared<catalog::Catalog>(
      std::vector<std::shared_ptr<const catalog::Model>>{sim::make_model("demo")});
  ServerState state_{
      .services = {clock_, world_.ids, hub_, residency_, [this] { return catalog_; }, requests_},
      .store = world_.store,
      .events = hub_,
      .config = nullptr,
      .http = {},
      .grpc = {},
      .state = {},
      .degraded = {},
      .loop_lag = {},
      .process_memory = {},
      .tree_memory = {},
      .domains = {},
      .on_readable = {},
      .run_blocking = [this](std::function<void()> work) { clock_.post(std::move(work)); }};
  // Who comes by the socket is an admin; on the network, a key says it.
  AdminService service_{
      state_, {.caller_of = [](const grpc::CallbackServerContext& context) -> Result<core::Caller> {
        if (context.client_metadata().contains("wrong-key")) {
          return fail(Reason::kUnauthenticated, "That key is not known.");
        }
        const bool by_socket = context.peer().starts_with("unix:");
        return core::Caller{by_socket ? core::Role::kAdmin : core::Role::kClient, true};
      }}};
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      io_.get_executor()};
  std::thread strand_{[this] { io_.run(); }};
};

TEST_F(RolesTest, L18_OnlyAdminsAreToldWhatMayHoldPathsAndKeys) {
  const v1::ListFailuresResponse for_admin = list(*admin());
  ASSERT_EQ(for_admin.failures_size(), 1);
  EXPECT_EQ(for_admin.failures(0).command(0), "secret-command");
  EXPECT_EQ(for_admin.failures(0).environment(0), "TOKEN=secret-token");
  EXPECT_EQ(for_admin.failures(0).log_tail(0), "secret-line");

  const v1::ListFailuresResponse for_client = list(*client(), "demo");
  ASSERT_EQ(for_client.failures_size(), 1);
  EXPECT_EQ(for_client.failures(0).id(), for_admin.failures(0).id());
  EXPECT_EQ(for_client.failures(0).reason(), "unknown model architecture: 'x'");
  EXPECT_EQ(for_client.DebugString().find("secret"), std::string::npos);
}

TEST_F(RolesTest, L23_OnlyAnAdminLiftsAFailureByHand) {
  for (const bool by_retry : {true, false}) {
    const grpc::Status refused = load(*client(), "demo", by_retry);
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED) << refused.error_message();
    EXPECT_EQ(list(*client()).failures_size(), 1) << "it stands as before";
  }
}

TEST_F(RolesTest, L22_AnUnknownModelIsNotFound) {
  EXPECT_EQ(load(*admin(), "dmeo", true).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(list(*admin()).failures_size(), 1);
}

TEST_F(RolesTest, S6_OnlyAdminsReadWhatTellsOfOthersAndOfPaths) {
  const auto stub = client();
  grpc::ClientContext log;
  v1::LogChunk chunk;
  const auto chunks = stub->ReadLog(&log, v1::ReadLogRequest());
  EXPECT_FALSE(chunks->Read(&chunk));
  EXPECT_EQ(chunks->Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);

  grpc::ClientContext config;
  v1::EffectiveConfig settings;
  EXPECT_EQ(stub->GetConfig(&config, {}, &settings).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);

  grpc::ClientContext unload;
  v1::UnloadModelRequest request;
  request.set_model("demo");
  v1::UnloadModelResponse unloaded;
  const grpc::Status refused = stub->UnloadModel(&unload, request, &unloaded);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_NE(refused.error_message().find("unload a model"), std::string::npos);
  const auto& trailers = unload.GetServerTrailingMetadata();
  const auto trailer = trailers.find(rpc::kErrorTrailer);
  ASSERT_NE(trailer, trailers.end());
  v1::ErrorDetail detail;
  ASSERT_TRUE(
      detail.ParseFromArray(trailer->second.data(), static_cast<int>(trailer->second.size())));
  EXPECT_EQ(detail.reason(), "permission_denied");
}

TEST_F(RolesTest, EventsGoOnBehindANumber) {
  for (int i = 0; i < 3; ++i) emit_stopping();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kGenerous);
  v1::WatchEventsRequest request;
  request.set_after(1);
  const auto reader = admin()->WatchEvents(&context, request);
  std::vector<std::uint64_t> numbers;
  for (v1::Event event; reader->Read(&event);) numbers.push_back(event.sequence());
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(numbers, (std::vector<std::uint64_t>{2, 3}));
}

TEST_F(RolesTest, TooManyWatchersAreRefusedWithTheDetail) {
  const auto places = take_all_places();
  const auto stub = client();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kGenerous);
  const auto reader = stub->WatchEvents(&context, v1::WatchEventsRequest());
  v1::Event event;
  EXPECT_FALSE(reader->Read(&event));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto trailer = trailers.find(rpc::kErrorTrailer);
  ASSERT_NE(trailer, trailers.end());
  v1::ErrorDetail detail;
  ASSERT_TRUE(
      detail.ParseFromArray(trailer->second.data(), static_cast<int>(trailer->second.size())));
  EXPECT_EQ(detail.reason(), "queue_full");
}

TEST_F(RolesTest, S6_AWrongKeyIsRefusedEverywhere) {
  const auto stub = admin();
  grpc::ClientContext unary;
  unary.AddMetadata("wrong-key", "x");
  v1::ListFailuresResponse failures;
  EXPECT_EQ(stub->ListFailures(&unary, {}, &failures).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  grpc::ClientContext stream;
  stream.AddMetadata("wrong-key", "x");
  const auto reader = stub->LoadModel(&stream, v1::LoadModelRequest());
  v1::LoadEvent event;
  EXPECT_FALSE(reader->Read(&event));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

}  // namespace
}  // namespace berth::admin
