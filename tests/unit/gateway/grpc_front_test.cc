#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "berth/v1/inference.grpc.pb.h"
#include "supervisor/gateway/grpc/call_gate.h"
#include "supervisor/gateway/grpc/grpc_server.h"
#include "supervisor/gateway/grpc/network_acceptor.h"
#include "tests/simulation/sim_clock.h"
#include "tests/unit/gateway/acceptor_support.h"

namespace berth::gateway {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

using testing::connect_to;
using testing::Folder;
using testing::kGenerous;

// Says in a model's name who calls.
class WhoService : public v1::Inference::CallbackService {
 public:
  explicit WhoService(rpc::CallAccess access) : access_(std::move(access)) {}
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const v1::ListModelsRequest* /*request*/,
                                       v1::ListModelsResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const Result<core::Caller> caller = access_.caller_of(*context);
    if (!caller) {
      rpc::finish_badly(*context, *reactor, rpc::detail_for(access_, {}, caller.error(), {}),
                        caller.error());
      return reactor;
    }
    if (const Status admitted = rpc::admit(access_, *context, caller); !admitted) {
      rpc::finish_badly(*context, *reactor, rpc::detail_for(access_, *caller, admitted.error(), {}),
                        admitted.error());
      return reactor;
    }
    response->add_models()->set_name(caller->tenant);
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* context,
                                     const v1::TokenizeRequest* /*request*/,
                                     v1::TokenizeResponse* /*response*/) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  inline static std::atomic<int> counting{0};
  // Goes on until its client is gone, whoever calls.
  grpc::ServerUnaryReactor* CountTokens(grpc::CallbackServerContext* /*context*/,
                                        const v1::TokenizeRequest* /*request*/,
                                        v1::CountTokensResponse* /*response*/) override {
    class Endless : public grpc::ServerUnaryReactor {
     public:
      Endless() {
        ++counting;
        counting.notify_all();
      }
      void OnCancel() override { Finish(grpc::Status::CANCELLED); }
      void OnDone() override { delete this; }  // NOLINT(cppcoreguidelines-owning-memory)
    };
    return std::make_unique<Endless>().release();
  }
  // Goes on until its client is gone.
  grpc::ServerWriteReactor<v1::GenerateEvent>* Generate(
      grpc::CallbackServerContext* context, const v1::GenerateRequest* /*request*/) override {
    class Endless : public grpc::ServerWriteReactor<v1::GenerateEvent> {
     public:
      Endless() { StartSendInitialMetadata(); }
      void OnCancel() override { Finish(grpc::Status::CANCELLED); }
      void OnDone() override { delete this; }  // NOLINT(cppcoreguidelines-owning-memory)
    };
    const Result<core::Caller> caller = access_.caller_of(*context);
    EXPECT_TRUE(rpc::admit(access_, *context, caller));
    return std::make_unique<Endless>().release();
  }

 private:
  const rpc::CallAccess access_;
};

class TellingAuthenticator : public Authenticator {
 public:
  [[nodiscard]] Result<core::Caller> authenticate(const Peer& peer,
                                                  const Presented& said) const override {
    ++asked;
    asked.notify_all();
    if (said.authorization == "Bearer wrong") {
      return fail(Reason::kUnauthenticated, "That key is not known.");
    }
    std::string who = peer.uid ? "uid:" + std::to_string(*peer.uid) : "network";
    if (peer.admin) who += " admin";
    if (peer.loopback) who += " loopback";
    if (said.loopback_host) who += " host";
    if (said.forwarded) who += " forwarded";
    if (said.foreign_origin) who += " origin";
    if (!said.authorization.empty()) who += " " + std::string(said.authorization);
    return core::Caller{.tenant = who, .key = std::string(said.authorization)};
  }

  mutable std::atomic<int> asked{0};
};

// A call that sends its metadata and no message.
class SilentCall : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  SilentCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
             const std::string& authorization)
      : stub_(channel) {
    context_.set_deadline(std::chrono::system_clock::now() + kGenerous);
    if (!authorization.empty()) context_.AddMetadata("authorization", authorization);
    stub_.PrepareBidiStreamingCall(&context_, method, {}, this);
    StartCall();
  }
  SilentCall(const SilentCall&) = delete;
  SilentCall& operator=(const SilentCall&) = delete;
  ~SilentCall() override {
    context_.TryCancel();
    status_.wait();
  }

  grpc::Status status() { return status_.get(); }
  // At last.
  void send() {
    StartWriteLast(&message_, {});
    StartRead(&answer_);
  }
  std::string detail() const {
    const auto& trailers = context_.GetServerTrailingMetadata();
    const auto found = trailers.find(rpc::kErrorTrailer);
    return found == trailers.end() ? "" : std::string(found->second.data(), found->second.size());
  }

 private:
  void OnDone(const grpc::Status& status) override { done_.set_value(status); }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::Slice nothing_;
  const grpc::ByteBuffer message_{&nothing_, 1};
  grpc::ByteBuffer answer_;
  std::promise<grpc::Status> done_;
  std::shared_future<grpc::Status> status_ = done_.get_future().share();
};

// A connection of the user nobody, which the kernel notes at its connect(): credentials are a
// thread's, only the C library makes them the process's.
std::shared_ptr<grpc::Channel> connect_as_nobody(const std::string& path) {
  constexpr uid_t kNobody = 65534;
  UniqueFd connection;
  std::thread([&] {
    if (::syscall(SYS_setresuid, kNobody, kNobody, kNobody) == 0) connection = connect_to(path);
  }).join();
  if (!connection) return nullptr;
  ::fcntl(connection.get(), F_SETFL, O_NONBLOCK);
  return grpc::CreateInsecureChannelFromFd("nobody", connection.release());
}

class GrpcFrontTest : public ::testing::Test {
 protected:
  std::unique_ptr<GrpcServer> listen(GrpcOptions options) {
    auto server =
        GrpcServer::listen(options, authenticator_, {}, [](const rpc::CallAccess& access) {
          GrpcServer::Services services;
          services.push_back(gated(std::make_unique<WhoService>(access),
                                   v1::Inference::service_full_name(), access));
          return services;
        });
    EXPECT_TRUE(server) << server.error().message;
    return server ? *std::move(server) : nullptr;
  }
  static std::shared_ptr<grpc::Channel> channel(
      const std::string& address,
      const std::shared_ptr<grpc::ChannelCredentials>& with = grpc::InsecureChannelCredentials()) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address, with, arguments);
  }
  static std::unique_ptr<v1::Inference::Stub> stub(
      const std::string& address,
      const std::shared_ptr<grpc::ChannelCredentials>& with = grpc::InsecureChannelCredentials()) {
    return v1::Inference::NewStub(channel(address, with));
  }
  struct Said {
    grpc::Status status;
    std::string who;
  };
  static Said who(v1::Inference::Stub& stub,
                  const std::vector<std::pair<std::string, std::string>>& metadata = {}) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kGenerous);
    for (const auto& [name, value] : metadata) context.AddMetadata(name, value);
    v1::ListModelsResponse response;
    Said said{stub.ListModels(&context, {}, &response), {}};
    if (response.models_size() == 1) said.who = response.models(0).name();
    return said;
  }

  const Folder folder_;
  const TellingAuthenticator authenticator_;
};

TEST_F(GrpcFrontTest, AKeysPlaceIsGivenBackHoweverItsCallEnds) {
  sim::SimClock clock;
  KeyGate gate(clock);
  gate.set({0, 1});
  const auto server =
      listen({.sockets = {folder_.file("s")}, .addresses = {"127.0.0.1:0"}, .limits = &gate});
  ASSERT_TRUE(server);
  const std::vector<std::pair<std::string, std::string>> key = {{"authorization", "Bearer k"}};
  for (const std::string& address : server->addresses()) {
    const auto client = stub(address);
    // One after the other each has the place, refused or not.
    for (int i = 0; i < 200; ++i) {
      const Said said = who(*client, key);
      ASSERT_TRUE(said.status.ok()) << said.status.error_message();
    }
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer k");
    const auto stream = client->Generate(&context, {});
    stream->WaitForInitialMetadata();
    const Said refused = who(*client, key);
    EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_TRUE(who(*client, {{"authorization", "Bearer other"}}).status.ok());
    EXPECT_TRUE(who(*client).status.ok());
    context.TryCancel();
    // The server hears of it later than its client.
    const auto until = std::chrono::steady_clock::now() + kGenerous;
    while (!who(*client, key).status.ok()) ASSERT_LT(std::chrono::steady_clock::now(), until);
  }
}

TEST_F(GrpcFrontTest, S6_WhoComesBySocketIsKnownByHisUser) {
  const auto server = listen({.sockets = {folder_.file("s")}});
  ASSERT_TRUE(server);
  EXPECT_EQ(server->addresses(), std::vector<std::string>{"unix:" + folder_.file("s")});
  const auto client = stub("unix:" + folder_.file("s"));
  const std::string own = "uid:" + std::to_string(::geteuid()) + " admin";
  for (int i = 0; i < 3; ++i) {
    const Said said = who(*client);
    ASSERT_TRUE(said.status.ok()) << said.status.error_message();
    EXPECT_TRUE(said.who.starts_with(own)) << said.who;
  }
  EXPECT_TRUE(who(*client, {{"authorization", "Bearer k"}}).who.ends_with("Bearer k"));
}

TEST_F(GrpcFrontTest, S6_TheNetworkIsToldApart) {
  const auto server = listen({.addresses = {"127.0.0.1:0"}});
  ASSERT_TRUE(server);
  ASSERT_EQ(server->addresses().size(), 1U);
  const std::string address = server->addresses().front();
  EXPECT_TRUE(address.starts_with("127.0.0.1:"));
  EXPECT_NE(address, "127.0.0.1:0") << "the port that was taken";
  const auto client = stub(address);
  EXPECT_EQ(who(*client).who, "network loopback host");
  EXPECT_EQ(who(*client, {{"x-forwarded-for", "1.2.3.4"}}).who, "network loopback host forwarded");
  EXPECT_EQ(who(*client, {{"via", "1.1 proxy"}}).who, "network loopback host forwarded");
  EXPECT_EQ(who(*client, {{"origin", "https://evil.example"}}).who, "network loopback host origin");
  const Said refused = who(*client, {{"authorization", "Bearer wrong"}});
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(who(*client, {{"authorization", "Bearer a"}, {"authorization", "Bearer b"}}).who,
            "network loopback host ambiguous");
}

TEST_F(GrpcFrontTest, S6_TheKeyIsLookedAtBeforeTheMessageComes) {
  const auto server = listen({.sockets = {folder_.file("s")}, .addresses = {"127.0.0.1:0"}});
  ASSERT_TRUE(server);
  for (const std::string& address : server->addresses()) {
    SilentCall call(channel(address), "/berth.v1.Inference/ListModels", "Bearer wrong");
    EXPECT_EQ(call.status().error_code(), grpc::StatusCode::UNAUTHENTICATED) << address;
    EXPECT_NE(call.detail(), "") << address;
  }
}

TEST_F(GrpcFrontTest, ACallThatEndsBeforeItsMessageCostsNothing) {
  const auto server = listen({.addresses = {"127.0.0.1:0"}});
  ASSERT_TRUE(server);
  const auto to = channel(server->addresses().front());
  for (int i = 0; i < 10; ++i) SilentCall(to, "/berth.v1.Inference/ListModels", "");
  EXPECT_TRUE(who(*v1::Inference::NewStub(to)).status.ok());
}

TEST_F(GrpcFrontTest, S6_WhoNeedsNoKeyKeepsNoCallWithoutAMessage) {
  auto server = GrpcServer::listen(
      {.addresses = {"127.0.0.1:0"}}, authenticator_, {}, [](const rpc::CallAccess& access) {
        GrpcServer::Services services;
        services.push_back(
            timed(std::make_unique<WhoService>(access), v1::Inference::service_full_name(), 100ms));
        return services;
      });
  ASSERT_TRUE(server) << server.error().message;
  const auto to = channel((*server)->addresses().front());
  SilentCall call(to, "/berth.v1.Inference/ListModels", "");
  EXPECT_EQ(call.status().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(call.status().error_message(), "The message did not come in time.");
  EXPECT_EQ(authenticator_.asked, 0);
  EXPECT_TRUE(who(*v1::Inference::NewStub(to)).status.ok()) << "the connection goes on";
}

TEST_F(GrpcFrontTest, ATakenAddressIsNamed) {
  const auto server = listen({.addresses = {"127.0.0.1:0"}});
  ASSERT_TRUE(server);
  const auto second =
      GrpcServer::listen({.addresses = server->addresses()}, authenticator_, {},
                         [](const rpc::CallAccess& /*access*/) { return GrpcServer::Services(); });
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find(server->addresses().front()), std::string::npos);
}

TEST_F(GrpcFrontTest, ANameIsServedAtEachOfItsAddresses) {
  const auto server = listen({.addresses = {"localhost:0"}});
  ASSERT_TRUE(server);
  const std::string address = server->addresses().front();
  EXPECT_TRUE(address.starts_with("localhost:"));
  EXPECT_EQ(who(*stub("127.0.0.1" + address.substr(address.rfind(':')))).who,
            "network loopback host");
  EXPECT_EQ(who(*stub(address)).who, "network loopback host");
}

TEST_F(GrpcFrontTest, AnAddressOfIpv6MayStandForIpv4) {
  if (!NetworkAcceptor::listen({.addresses = {"[::1]:0"}, .on_connection = {}})) {
    GTEST_SKIP() << "there is no IPv6";
  }
  const auto server = listen({.addresses = {"[::1]:0", "[::]:0", "[::ffff:127.0.0.1]:0"}});
  ASSERT_TRUE(server);
  const auto port = [&](std::size_t at) {
    const std::string& address = server->addresses().at(at);
    return address.substr(address.rfind(':'));
  };
  EXPECT_EQ(who(*stub("[::1]" + port(0))).who, "network loopback host");
  EXPECT_EQ(who(*stub("[::1]" + port(1))).who, "network loopback host");
  EXPECT_EQ(who(*stub("127.0.0.1" + port(1))).who, "network loopback host");
  EXPECT_EQ(who(*stub("127.0.0.1" + port(2))).who, "network loopback host");
}

TEST_F(GrpcFrontTest, S6_OneUserHasABoundOfCalls) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  const std::string path = folder_.file("s");
  ASSERT_EQ(::chmod(std::filesystem::path(path).parent_path().c_str(), 0755), 0);
  const auto server = listen({.sockets = {path}, .most_calls_of_user = 2});
  ASSERT_TRUE(server);
  const auto other = connect_as_nobody(path);
  ASSERT_TRUE(other);
  const std::string method = "/berth.v1.Inference/ListModels";
  const auto said = [&](const std::shared_ptr<grpc::Channel>& by) {
    return who(*v1::Inference::NewStub(by)).status;
  };
  auto first = std::make_unique<SilentCall>(other, method, "");
  authenticator_.asked.wait(0);
  const SilentCall second(other, method, "");
  authenticator_.asked.wait(1);
  const grpc::Status refused = said(other);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(refused.error_message().find("2 calls"), std::string::npos);
  EXPECT_TRUE(said(channel("unix:" + path)).ok()) << "an admin's";
  first.reset();
  const auto until = std::chrono::steady_clock::now() + kGenerous;
  bool taken = false;
  while (!taken && std::chrono::steady_clock::now() < until) taken = said(other).ok();
  EXPECT_TRUE(taken);
}

TEST_F(GrpcFrontTest, WhoWasLetInStaysSoHoweverManyComeAfterwards) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  const std::string path = folder_.file("s");
  ASSERT_EQ(::chmod(std::filesystem::path(path).parent_path().c_str(), 0755), 0);
  const auto server = listen({.sockets = {path}, .most_calls_of_user = 1});
  ASSERT_TRUE(server);
  const auto other = connect_as_nobody(path);
  ASSERT_TRUE(other);
  SilentCall first(other, "/berth.v1.Inference/ListModels", "");
  authenticator_.asked.wait(0);
  const int before = WhoService::counting;
  const SilentCall beyond(other, "/berth.v1.Inference/CountTokens", "");
  WhoService::counting.wait(before);
  EXPECT_EQ(authenticator_.asked, 1) << "it is refused";
  first.send();
  EXPECT_TRUE(first.status().ok()) << first.status().error_message();
  EXPECT_EQ(authenticator_.asked, 2) << "its key may have gone";
}

TEST_F(GrpcFrontTest, S6_TlsOnTheNetwork) {
  const std::string key = folder_.file("key.pem");
  const std::string cert = folder_.file("cert.pem");
  const std::string command =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -keyout " +
      key + " -out " + cert +
      " -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>/dev/null";
  // NOLINTNEXTLINE(concurrency-mt-unsafe): its words are ours
  if (std::system(command.c_str()) != 0) GTEST_SKIP() << "there is no openssl";
  const auto server = listen({.addresses = {"127.0.0.1:0"}, .tls_cert = cert, .tls_key = key});
  ASSERT_TRUE(server);
  std::ifstream file(cert);
  grpc::SslCredentialsOptions trusted;
  trusted.pem_root_certs = std::string{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(who(*stub(server->addresses().front(), grpc::SslCredentials(trusted))).who,
            "network loopback host");
  EXPECT_FALSE(who(*stub(server->addresses().front())).status.ok()) << "without TLS";
}

TEST_F(GrpcFrontTest, S6_AMissingCertificateIsNamed) {
  const auto server = GrpcServer::listen(
      {.addresses = {"127.0.0.1:0"}, .tls_cert = folder_.file("no.pem"), .tls_key = "/no.key"},
      authenticator_, {}, [](const rpc::CallAccess& /*access*/) { return GrpcServer::Services(); });
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().reason, Reason::kInvalidArgument);
  EXPECT_NE(server.error().message.find("no.pem"), std::string::npos);
  EXPECT_NE(server.error().message.find("server.tls_cert"), std::string::npos);
}

// As docs/api.md says: without a trailer.
TEST_F(GrpcFrontTest, AMessageBeyondTheLimitIsRefusedAndTheConnectionGoesOn) {
  const auto server =
      listen({.sockets = {folder_.file("s")}, .max_message_bytes = 1024UL * 1024UL});
  ASSERT_TRUE(server);
  const auto client = stub("unix:" + folder_.file("s"));
  v1::TokenizeRequest request;
  request.set_text(std::string(2UL * 1024UL * 1024UL, 'a'));
  v1::TokenizeResponse response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kGenerous);
  const grpc::Status status = client->Tokenize(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_NE(status.error_message().find("1048576"), std::string::npos) << status.error_message();
  EXPECT_FALSE(context.GetServerTrailingMetadata().contains(rpc::kErrorTrailer));
  EXPECT_TRUE(who(*client).status.ok());
}

// A few bytes would become any number of them, beyond every bound.
TEST_F(GrpcFrontTest, S6_ACompressedMessageIsRefusedAndFloodsNoLog) {
  const auto server = listen(
      {.sockets = {folder_.file("s")}, .addresses = {"127.0.0.1:0"}, .max_message_bytes = 1 << 20});
  ASSERT_TRUE(server);
  v1::TokenizeRequest request;
  request.set_text(std::string(2UL * 1024UL * 1024UL, 'a'));
  ::testing::internal::CaptureStderr();
  for (const std::string& address : server->addresses()) {
    const auto client = stub(address);
    for (int i = 0; i < 30; ++i) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + kGenerous);
      context.set_compression_algorithm(i % 2 == 0 ? GRPC_COMPRESS_GZIP : GRPC_COMPRESS_DEFLATE);
      v1::TokenizeResponse response;
      const grpc::Status status = client->Tokenize(&context, request, &response);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
    }
    EXPECT_TRUE(who(*client).status.ok()) << "the connection goes on";
  }
  const std::string logged = ::testing::internal::GetCapturedStderr();
  EXPECT_LE(std::ranges::count(logged, '\n'), 12) << logged;
}

TEST_F(GrpcFrontTest, L29_AfterTheShutdownNobodyIsServed) {
  const auto server = listen({.sockets = {folder_.file("s")}, .addresses = {"127.0.0.1:0"}});
  ASSERT_TRUE(server);
  const auto by_socket = stub("unix:" + folder_.file("s"));
  const auto by_network = stub(server->addresses().back());
  ASSERT_TRUE(who(*by_socket).status.ok());
  ASSERT_TRUE(who(*by_network).status.ok());
  server->shutdown(std::chrono::milliseconds(0));
  EXPECT_EQ(who(*by_socket).status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(who(*by_network).status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_FALSE(connect_to(folder_.file("s")));
}

TEST_F(GrpcFrontTest, L29_WhoComesMeanwhileIsToldThatTheServerStops) {
  const auto server = listen({.sockets = {folder_.file("s")}, .addresses = {"127.0.0.1:0"}});
  ASSERT_TRUE(server);
  SilentCall call(channel(server->addresses().back()), "/berth.v1.Inference/ListModels", "");
  authenticator_.asked.wait(0);
  const auto ended = std::async([&] { server->shutdown(kGenerous); });
  while (connect_to(folder_.file("s"))) std::this_thread::yield();
  call.send();
  EXPECT_EQ(call.status().error_code(), grpc::StatusCode::UNAVAILABLE);
  v1::ErrorDetail detail;
  ASSERT_TRUE(detail.ParseFromString(call.detail()));
  EXPECT_EQ(detail.reason(), "shutting_down");
  EXPECT_EQ(ended.wait_for(kGenerous), std::future_status::ready);
}

}  // namespace
}  // namespace berth::gateway