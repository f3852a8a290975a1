#include <fcntl.h>
#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "berth/v1/admin.grpc.pb.h"
#include "berth/v1/inference.grpc.pb.h"
#include "common/errno_text.h"
#include "common/fd.h"
#include "common/units.h"
#include "supervisor/cli/client/client.h"
#include "supervisor/cli/client/connect_problem.h"

namespace berth::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kErrorTrailer[] = "berth-error-bin";
constexpr seconds kUnaryDeadline{10};
// An unload ends when the process is gone, which may be after a drain.
constexpr seconds kUnloadDeadline{120};
constexpr seconds kProblemDeadline{1};
constexpr int kMaxMessageBytes = 64 << 20;

// gRPC's own log lines would mix with ours; GRPC_VERBOSITY brings them back.
void quieten_grpc() {
  static const bool done = [] {
    const char* verbosity = std::getenv("GRPC_VERBOSITY");  // NOLINT(concurrency-mt-unsafe)
    if (verbosity == nullptr || *verbosity == '\0') {
      gpr_set_log_function([](gpr_log_func_args*) {});
    }
    return true;
  }();
  static_cast<void>(done);
}

CallError unreachable(std::string message) {
  CallError error;
  error.kind = CallError::Kind::kUnreachable;
  error.message = std::move(message);
  return error;
}

CallError stopped() {
  CallError error;
  error.kind = CallError::Kind::kStopped;
  return error;
}

// Why nobody can be reached by a Unix socket, or nothing. Knows more than a channel that merely
// does not become ready.
std::optional<std::string> socket_problem(const std::string& path, milliseconds deadline) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return "there is no socket " + path;
    return "cannot look at the socket " + path + ": " + errno_text(errno);
  }
  if (!S_ISSOCK(status.st_mode)) return path + " is not a socket";

  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return "cannot make a socket: " + errno_text(errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const auto until = std::chrono::steady_clock::now() + deadline;
  while (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    if (error == EINTR) continue;
    if (error == EAGAIN && std::chrono::steady_clock::now() < until) {
      // Its queue of connections is full: a busy daemon, not an absent one.
      ::poll(nullptr, 0, 10);
      continue;
    }
    if (error == ECONNREFUSED) return "nobody listens on the socket " + path;
    if (error == EACCES) {
      return "this user may not use the socket " + path +
             " (membership of its group may be missing)";
    }
    return "cannot connect to the socket " + path + ": " + errno_text(error);
  }
  return std::nullopt;
}

std::string target_of(const Endpoint& endpoint) {
  if (!endpoint.socket.empty()) return "unix:" + endpoint.socket;
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  return (v6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" + std::to_string(endpoint.port);
}

std::shared_ptr<grpc::ChannelCredentials> credentials_of(const Access& access) {
  if (access.tls_ca.empty()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = access.tls_ca;
  return grpc::SslCredentials(options);
}

std::string reason_name(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
      return "invalid_argument";
    case grpc::StatusCode::NOT_FOUND:
      return "not_found";
    case grpc::StatusCode::UNAUTHENTICATED:
      return "unauthenticated";
    case grpc::StatusCode::PERMISSION_DENIED:
      return "permission_denied";
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return "body_too_large";
    case grpc::StatusCode::FAILED_PRECONDITION:
      return "conflict";
    default:
      return "internal";
  }
}

// What a failed call says. `in_stream` is the stream's last event, where that was an error.
CallError to_error(const grpc::Status& status, const grpc::ClientContext& context,
                   const std::optional<v1::ErrorDetail>& in_stream, const std::string& where) {
  CallError error;
  error.kind = CallError::Kind::kRefused;
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto trailer = trailers.find(kErrorTrailer);
  const bool in_trailer =
      trailer != trailers.end() &&
      error.detail.ParseFromArray(trailer->second.data(), static_cast<int>(trailer->second.size()));
  if (in_stream) {
    error.detail = *in_stream;
    error.delivered = true;
  } else if (!in_trailer) {
    error.detail.Clear();
    // Without the daemon's own words these codes come from the connection, not from the daemon.
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      return unreachable("the connection to " + where + " broke: " + status.error_message());
    }
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      return unreachable("the daemon at " + where + " did not answer in time");
    }
    if (status.error_code() == grpc::StatusCode::CANCELLED) {
      return unreachable("the daemon at " + where + " ended the call");
    }
    if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
      error.detail.set_reason("internal");
      error.detail.set_message("the daemon at " + where +
                               " does not know this call: it may be of another version");
      return error;
    }
  }
  if (error.detail.reason().empty()) error.detail.set_reason(reason_name(status.error_code()));
  if (error.detail.message().empty()) {
    error.detail.set_message(status.error_message().empty() ? "the daemon gave no reason"
                                                            : status.error_message());
  }
  return error;
}

// The error of an event, where it is one that ends its stream.
template <typename Event>
const v1::ErrorDetail* error_of(const Event& event) {
  if constexpr (requires { event.error(); }) {
    if (event.has_error()) return &event.error();
  }
  return nullptr;
}

class GrpcClient : public Client {
 public:
  GrpcClient(const std::shared_ptr<grpc::Channel>& channel, std::string where,
             const std::string& api_key)
      : where_(std::move(where)),
        authorization_(api_key.empty() ? std::string() : "Bearer " + api_key),
        admin_(v1::Admin::NewStub(channel)),
        inference_(v1::Inference::NewStub(channel)) {}

  Reply<v1::ServerInfo> server_info() override {
    return unary<v1::ServerInfo>(kUnaryDeadline, [&](auto* context, auto* reply) {
      return admin_->GetServerInfo(context, v1::GetServerInfoRequest(), reply);
    });
  }
  Reply<v1::ListModelsResponse> list_models() override {
    return unary<v1::ListModelsResponse>(kUnaryDeadline, [&](auto* context, auto* reply) {
      return inference_->ListModels(context, v1::ListModelsRequest(), reply);
    });
  }
  Reply<v1::ListInstancesResponse> list_instances() override {
    return unary<v1::ListInstancesResponse>(kUnaryDeadline, [&](auto* context, auto* reply) {
      return admin_->ListInstances(context, v1::ListInstancesRequest(), reply);
    });
  }
  Reply<v1::EffectiveConfig> effective_config() override {
    return unary<v1::EffectiveConfig>(kUnaryDeadline, [&](auto* context, auto* reply) {
      return admin_->GetConfig(context, v1::GetConfigRequest(), reply);
    });
  }
  Reply<v1::UnloadModelResponse> unload(const v1::UnloadModelRequest& request) override {
    return unary<v1::UnloadModelResponse>(kUnloadDeadline, [&](auto* context, auto* reply) {
      return admin_->UnloadModel(context, request, reply);
    });
  }
  Reply<v1::ModelPlan> plan(const v1::PlanModelRequest& request) override {
    return unary<v1::ModelPlan>(kUnaryDeadline, [&](auto* context, auto* reply) {
      return admin_->PlanModel(context, request, reply);
    });
  }
  Reply<v1::Memory> memory() override {
    return unary<v1::Memory>(kUnaryDeadline, [&](auto* context, auto* reply) {
      return admin_->GetMemory(context, v1::GetMemoryRequest(), reply);
    });
  }
  Reply<v1::PinModelResponse> pin(const v1::PinModelRequest& request) override {
    return unary<v1::PinModelResponse>(kUnaryDeadline, [&](auto* context, auto* reply) {
      return admin_->PinModel(context, request, reply);
    });
  }
  Reply<v1::UnpinModelResponse> unpin(const v1::UnpinModelRequest& request) override {
    return unary<v1::UnpinModelResponse>(kUnaryDeadline, [&](auto* context, auto* reply) {
      return admin_->UnpinModel(context, request, reply);
    });
  }
  Reply<v1::ListFailuresResponse> list_failures(const v1::ListFailuresRequest& request) override {
    return unary<v1::ListFailuresResponse>(kUnaryDeadline, [&](auto* context, auto* reply) {
      return admin_->ListFailures(context, request, reply);
    });
  }
  Reply<v1::ModelReport> explain(const v1::ExplainModelRequest& request) override {
    return unary<v1::ModelReport>(kUnaryDeadline, [&](auto* context, auto* reply) {
      return admin_->ExplainModel(context, request, reply);
    });
  }

  Reply<void> generate(const v1::GenerateRequest& request,
                       const Handler<v1::GenerateEvent>& on_event,
                       const std::stop_token& stop) override {
    return stream(on_event, stop,
                  [&](auto* context) { return inference_->Generate(context, request); });
  }
  Reply<void> load(const v1::LoadModelRequest& request, const Handler<v1::LoadEvent>& on_event,
                   const std::stop_token& stop) override {
    return stream(on_event, stop,
                  [&](auto* context) { return admin_->LoadModel(context, request); });
  }
  Reply<void> retry(const v1::LoadModelRequest& request, const Handler<v1::LoadEvent>& on_event,
                    const std::stop_token& stop) override {
    return stream(on_event, stop,
                  [&](auto* context) { return admin_->RetryModel(context, request); });
  }
  Reply<void> read_log(const v1::ReadLogRequest& request, const Handler<v1::LogChunk>& on_chunk,
                       const std::stop_token& stop) override {
    return stream(on_chunk, stop, [&](auto* context) { return admin_->ReadLog(context, request); });
  }
  Reply<void> watch_events(const v1::WatchEventsRequest& request,
                           const Handler<v1::Event>& on_event,
                           const std::stop_token& stop) override {
    return stream(on_event, stop,
                  [&](auto* context) { return admin_->WatchEvents(context, request); });
  }

 private:
  // Not as credentials of the call: those gRPC sends over TLS only, and it is the user who decides.
  void introduce(grpc::ClientContext& context) const {
    if (!authorization_.empty()) context.AddMetadata("authorization", authorization_);
  }

  template <typename T, typename Call>
  Reply<T> unary(seconds deadline, Call call) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + deadline);
    introduce(context);
    T reply;
    const grpc::Status status = call(&context, &reply);
    if (!status.ok()) return tl::unexpected(to_error(status, context, std::nullopt, where_));
    return reply;
  }

  template <typename Event, typename Open>
  Reply<void> stream(const Handler<Event>& on_event, const std::stop_token& stop, Open open) {
    grpc::ClientContext context;
    introduce(context);
    const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    auto reader = open(&context);
    bool by_handler = false;
    std::optional<v1::ErrorDetail> in_stream;
    Event event;
    while (reader->Read(&event)) {
      if (by_handler) continue;  // read what is on its way until the cancel has worked
      if (const v1::ErrorDetail* error = error_of(event)) in_stream = *error;
      if (!on_event(event)) {
        by_handler = true;
        context.TryCancel();
      }
    }
    const grpc::Status status = reader->Finish();
    if (in_stream) {
      return tl::unexpected(to_error(status, context, in_stream, where_));
    }
    if (status.ok()) return {};
    if (by_handler || stop.stop_requested()) return tl::unexpected(stopped());
    return tl::unexpected(to_error(status, context, std::nullopt, where_));
  }

  std::string where_;
  std::string authorization_;  // empty: none
  std::unique_ptr<v1::Admin::Stub> admin_;
  std::unique_ptr<v1::Inference::Stub> inference_;
};

// What gRPC says of a channel that did not become ready: a call that is not waited for tells it.
std::string broken_channel_text(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kProblemDeadline);
  v1::ServerInfo reply;
  const auto admin = v1::Admin::NewStub(channel);
  return admin->GetServerInfo(&context, v1::GetServerInfoRequest(), &reply).error_message();
}

}  // namespace

Reply<std::unique_ptr<Client>> connect(const Endpoint& endpoint, const Access& access,
                                       milliseconds connect_deadline) {
  quieten_grpc();
  const auto until = std::chrono::system_clock::now() + connect_deadline;
  if (!endpoint.socket.empty()) {
    if (auto problem = socket_problem(endpoint.socket, connect_deadline)) {
      return tl::unexpected(unreachable(std::move(*problem)));
    }
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  // A Unix socket's path is no host name.
  if (!endpoint.socket.empty()) arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  const auto channel =
      grpc::CreateCustomChannel(target_of(endpoint), credentials_of(access), arguments);

  grpc_connectivity_state state = channel->GetState(true);
  while (state != GRPC_CHANNEL_READY) {
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_SHUTDOWN) break;
    if (!channel->WaitForStateChange(state, until)) break;
    state = channel->GetState(true);
  }
  if (state == GRPC_CHANNEL_READY) {
    return std::make_unique<GrpcClient>(channel, endpoint.text, access.api_key);
  }
  if (state == GRPC_CHANNEL_TRANSIENT_FAILURE) {
    return tl::unexpected(
        unreachable(connect_problem(broken_channel_text(channel), !access.tls_ca.empty())));
  }
  return tl::unexpected(unreachable("no answer within " + format_duration_human(connect_deadline)));
}

}  // namespace berth::cli
