#include "supervisor/gateway/grpc/grpc_server.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/compression.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <iterator>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "supervisor/gateway/grpc/call_count.h"
#include "supervisor/gateway/grpc/call_gate.h"
#include "supervisor/gateway/grpc/call_peer.h"
#include "supervisor/gateway/grpc/call_permits.h"
#include "supervisor/gateway/grpc/grpc_log.h"
#include "supervisor/gateway/grpc/malformed_message.h"
#include "supervisor/gateway/grpc/network_acceptor.h"
#include "supervisor/gateway/grpc/network_credentials.h"
#include "supervisor/gateway/grpc/peer_servers.h"
#include "supervisor/gateway/grpc/unix_acceptor.h"
#include "supervisor/rpc/callback_threads.h"

namespace berth::gateway {
namespace {

using Builder = grpc::ServerBuilder;
using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

// A peer that vanished without a word (a cut cable) is noticed after these two together.
constexpr int kKeepaliveMs = 30'000;
constexpr int kKeepaliveTimeoutMs = 20'000;
// What clients may ping at most; gRPC's own clients never go below 10 s.
constexpr int kLeastPingIntervalMs = 9'000;
// Without a call a connection is closed; clients open it again with their next one.
constexpr int kIdleConnectionMs = 30 * 60 * 1000;
// The same on the network, where connections are fewer than those who could open them.
constexpr int kIdleNetworkMs = 60 * 1000;
// For a new connection to show that it speaks TLS, where there is TLS, and HTTP/2.
constexpr int kHandshakeMs = 10 * 1000;
// Of one connection. gRPC's clients let the others wait.
constexpr int kMostStreams = 1024;
// Messages that all connections of a quota together may hold, in the largest one's size.
constexpr std::uint64_t kMessagesAtOnce = 16;
constexpr std::uint64_t kLeastQuota = 256ULL << 20U;

// What all servers of the front share.
struct Common {
  std::uint64_t max_message_bytes = 0;
  int most_calls_of_user = 0;
  // Whoever comes by network never is in the way of this machine's users.
  grpc::ResourceQuota socket_quota{"berth-sockets"};
  grpc::ResourceQuota network_quota{"berth-network"};
  const Authenticator& authenticator;
  const std::function<Error(Error, const core::Caller&)> cut;
  const GrpcServer::MakeServices make_services;
  const std::shared_ptr<CallPermits> permits;
  std::atomic<bool> closing{false};

  using CallerOf = std::function<Result<core::Caller>(const grpc::CallbackServerContext&)>;
  [[nodiscard]] rpc::CallAccess access(CallerOf caller_of) const {
    return {.caller_of = std::move(caller_of),
            .admit = [kept = permits](
                         const grpc::CallbackServerContext& context,
                         const core::Caller& caller) { return kept->admit(context, caller); },
            .cut = cut};
  }

  // Who makes the call of that peer, who has so many.
  [[nodiscard]] Result<core::Caller> caller_of(const Peer& peer,
                                               const grpc::CallbackServerContext& context,
                                               int calls = 0) const {
    const std::optional<Status>& verdict = verdict_at_gate();
    if (verdict && !*verdict) return fail(verdict->error());
    if (closing) return fail(Reason::kShuttingDown, "The server is stopping.");
    // Whoever was let in stays so, however many come while his message does.
    if (!verdict && calls > most_calls_of_user && !peer.admin) {
      return fail(Reason::kQueueFull, "This user already has " +
                                          std::to_string(most_calls_of_user) +
                                          " calls. Wait for some of them to end.");
    }
    // Also of one who was let in: his key may have gone since then.
    return authenticator.authenticate(peer, presented(context));
  }
};

using Interceptors =
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>>;

void configure(Builder& builder, const Common& common, const grpc::ResourceQuota& quota,
               Interceptors interceptors = {}) {
  const auto most = static_cast<int>(
      std::min<std::uint64_t>(common.max_message_bytes, std::numeric_limits<int>::max()));
  builder.SetMaxReceiveMessageSize(most);
  // A compressed message has its bound before gRPC expands it, and none of what it becomes: so
  // there is none, and what came as one nevertheless is not expanded.
  builder.AddChannelArgument(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET,
                             1 << GRPC_COMPRESS_NONE);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.SetResourceQuota(quota);
  interceptors.push_back(release_permits(common.permits));
  interceptors.push_back(explain_malformed_messages());
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostStreams);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kLeastPingIntervalMs);
}

void give(Acceptor& to, UniqueFd connection) {
  Acceptor::NewConnectionParameters parameters;
  parameters.fd = connection.release();
  to.HandleNewConnection(&parameters);
}

// The calls of one peer by Unix socket.
class RealPeerServer : public PeerServer {
 public:
  static std::unique_ptr<PeerServer> make(Common& common, const Peer& peer) {
    std::unique_ptr<RealPeerServer> made(new RealPeerServer);
    std::atomic<Time>& used = made->used_;
    made->services_ = common.make_services(common.access(
        [&common, peer, &used, calls = made->calls_](const grpc::CallbackServerContext& context) {
          used = std::chrono::steady_clock::now();
          return common.caller_of(peer, context, *calls);
        }));
    Builder builder;
    Interceptors counting;
    counting.push_back(count_calls(made->calls_));
    configure(builder, common, common.socket_quota, std::move(counting));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleConnectionMs);
    made->acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        Builder::experimental_type::ExternalConnectionType::FROM_FD,
        grpc::InsecureServerCredentials());
    for (const auto& service : made->services_) builder.RegisterService(service.get());
    made->server_ = builder.BuildAndStart();
    if (!made->server_) return nullptr;
    return made;
  }
  ~RealPeerServer() override { shutdown(std::chrono::system_clock::now()); }
  RealPeerServer(const RealPeerServer&) = delete;
  RealPeerServer& operator=(const RealPeerServer&) = delete;

  void take(UniqueFd connection) override {
    used_ = std::chrono::steady_clock::now();
    give(*acceptor_, std::move(connection));
  }
  [[nodiscard]] Time last_used() const override { return used_; }
  [[nodiscard]] bool busy() const override { return *calls_ > 0; }
  void shutdown(std::chrono::system_clock::time_point until) override {
    if (server_) server_->Shutdown(until);
  }

 private:
  RealPeerServer() = default;

  std::atomic<Time> used_{Time{}};
  const std::shared_ptr<std::atomic<int>> calls_ = std::make_shared<std::atomic<int>>(0);
  GrpcServer::Services services_;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
};

class RealServer : public GrpcServer {
 public:
  RealServer(const GrpcOptions& options, const Authenticator& authenticator,
             std::function<Error(Error, const core::Caller&)> cut, MakeServices make_services)
      : options_(options),
        common_{.max_message_bytes = options.max_message_bytes,
                .most_calls_of_user = options.most_calls_of_user,
                .authenticator = authenticator,
                .cut = std::move(cut),
                .make_services = std::move(make_services),
                .permits = std::make_shared<CallPermits>(options.limits)} {
    const std::uint64_t most = std::max(options.max_message_bytes * kMessagesAtOnce, kLeastQuota);
    common_.socket_quota.Resize(most);
    common_.network_quota.Resize(most);
  }
  ~RealServer() override { shutdown(std::chrono::milliseconds(0)); }
  RealServer(const RealServer&) = delete;
  RealServer& operator=(const RealServer&) = delete;

  Status open() {
    for (const std::string& socket : options_.sockets) addresses_.push_back("unix:" + socket);
    if (Status opened = open_network(); !opened) return opened;
    Result<std::unique_ptr<UnixAcceptor>> acceptor = UnixAcceptor::listen(
        {.paths = options_.sockets,
         .mode = options_.socket_mode,
         .on_connection =
             [this](UniqueFd connection, const SocketPeer& peer) {
               peers_.take(std::move(connection), peer_from(peer));
             },
         .trusted = [this](const SocketPeer& peer) { return peer_from(peer).admin; }});
    if (!acceptor) return fail(acceptor.error());
    acceptor_ = *std::move(acceptor);
    return {};
  }

  [[nodiscard]] const std::vector<std::string>& addresses() const override { return addresses_; }

  void shutdown(std::chrono::milliseconds wait) override {
    const auto until = std::chrono::system_clock::now() + wait;
    common_.closing = true;
    acceptor_.reset();
    network_acceptor_.reset();
    // What was handed over meanwhile is closed. All end in the same time, or the last ones would
    // take calls until the first are through. Without a thread it happens below.
    std::future<void> network = std::async([this, until] {
      if (network_) network_->Shutdown(until);
    });
    peers_.shutdown(until);
    network.get();
  }

 private:
  Status open_network() {
    if (options_.addresses.empty()) return {};
    auto with = network_credentials(options_.tls_cert, options_.tls_key);
    if (!with) return fail(with.error());
    auto acceptor = NetworkAcceptor::listen(
        {.addresses = options_.addresses, .on_connection = [this](UniqueFd connection) {
           give(*network_door_, std::move(connection));
         }});
    if (!acceptor) return fail(acceptor.error());
    network_acceptor_ = *std::move(acceptor);
    std::ranges::copy(network_acceptor_->addresses(), std::back_inserter(addresses_));
    network_services_ =
        common_.make_services(common_.access([this](const grpc::CallbackServerContext& context) {
          return common_.caller_of(network_peer(context.peer()), context);
        }));
    Builder builder;
    configure(builder, common_, common_.network_quota);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleNetworkMs);
    network_door_ = builder.experimental().AddExternalConnectionAcceptor(
        Builder::experimental_type::ExternalConnectionType::FROM_FD, *with);
    for (const auto& service : network_services_) builder.RegisterService(service.get());
    network_ = builder.BuildAndStart();
    if (!network_) {
      return fail(Reason::kInvalidArgument,
                  "gRPC cannot be served. Check that server.tls_cert and server.tls_key belong "
                  "together.");
    }
    return network_acceptor_->start();
  }

  [[nodiscard]] Peer peer_from(const SocketPeer& peer) const {
    const bool in_group =
        options_.admin_group &&
        std::ranges::find(peer.groups, *options_.admin_group) != peer.groups.end();
    return {.uid = peer.uid, .admin = peer.uid == 0 || peer.uid == ::geteuid() || in_group};
  }

  const GrpcOptions options_;
  Common common_;
  std::vector<std::string> addresses_;
  Services network_services_;
  std::unique_ptr<Acceptor> network_door_;
  std::unique_ptr<grpc::Server> network_;
  PeerServers peers_{kMostPeers,
                     [this](const Peer& peer) { return RealPeerServer::make(common_, peer); }};
  // Their threads use the others.
  std::unique_ptr<NetworkAcceptor> network_acceptor_;
  std::unique_ptr<UnixAcceptor> acceptor_;
};

// Once in a program, before its first server of this kind; it holds for all that are made later.
void set_up_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    // What is wrong with a client's message is told to the client; standard error is not his.
    google::protobuf::SetLogHandler(nullptr);
    bound_grpc_log();
  });
}

}  // namespace

Result<std::unique_ptr<GrpcServer>> GrpcServer::listen(
    const GrpcOptions& options, const Authenticator& authenticator,
    std::function<Error(Error, const core::Caller&)> cut, MakeServices make_services) {
  set_up_once();
  rpc::keep_callback_threads();
  auto server = std::make_unique<RealServer>(options, authenticator, std::move(cut),
                                             std::move(make_services));
  if (Status opened = server->open(); !opened) return fail(opened.error());
  return server;
}

}  // namespace berth::gateway
