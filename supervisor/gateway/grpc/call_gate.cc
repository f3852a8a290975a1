#include "supervisor/gateway/grpc/call_gate.h"

#include <google/protobuf/descriptor.h>
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpcpp/alarm.h>
#include <grpcpp/impl/call.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/server_context.h>

#include <chrono>
#include <functional>
#include <list>
#include <string>
#include <utility>

namespace berth::gateway {
namespace {

using grpc::internal::MethodHandler;
using grpc::internal::RpcServiceMethod;
using Parameter = MethodHandler::HandlerParameter;

struct GateRules {
  std::optional<rpc::CallAccess> access;     // absent: everybody may call
  std::chrono::milliseconds message_within;  // zero: there is no such bound
};

std::optional<Status>& verdict_here() {
  thread_local std::optional<Status> verdict;
  return verdict;
}

// Takes the message, which may be null: the call ended before it came.
void hand_over(MethodHandler& to, const Parameter& call, grpc_byte_buffer* message,
               std::optional<Status> verdict) {
  verdict_here() = std::move(verdict);
  grpc::Status status;
  void* data = nullptr;
  void* request = to.Deserialize(call.call->call(), message, &status, &data);
  to.RunHandler(
      Parameter(call.call, call.server_context, request, status, data, call.call_requester));
  verdict_here().reset();
}

// A message that is being received. Deletes itself when it is handed over.
class Reading : public grpc_completion_queue_functor {
 public:
  static void start(MethodHandler& to, const Parameter& call, const GateRules& rules) {
    // Until gRPC calls back.
    Reading* reading = std::make_unique<Reading>(to, call, rules.access.has_value()).release();
    const std::chrono::milliseconds within = rules.message_within;
    if (within > std::chrono::milliseconds(0)) reading->end_after(within);
    grpc_op receive{};
    receive.op = GRPC_OP_RECV_MESSAGE;
    receive.data.recv_message.recv_message = &reading->message_;
    const grpc_call_error started =
        grpc_call_start_batch(call.call->call(), &receive, 1, reading, nullptr);
    if (started != GRPC_CALL_OK) on_received(reading, 0);
  }

  Reading(MethodHandler& to, const Parameter& call, bool admitted)
      : to_(to), call_(call), admitted_(admitted) {
    functor_run = &on_received;
    inlineable = 0;
    grpc_call_ref(call_.call->call());
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading() { grpc_call_unref(call_.call->call()); }

 private:
  void end_after(std::chrono::milliseconds within) {
    grpc_call* const call = call_.call->call();
    grpc_call_ref(call);
    alarm_.Set(std::chrono::system_clock::now() + within, [call](bool late) {
      if (late) {
        grpc_call_cancel_with_status(call, GRPC_STATUS_DEADLINE_EXCEEDED,
                                     "The message did not come in time.", nullptr);
      }
      grpc_call_unref(call);
    });
  }
  static void on_received(grpc_completion_queue_functor* functor, int /*ok*/) {
    const std::unique_ptr<Reading> self(static_cast<Reading*>(functor));
    std::optional<Status> verdict;
    if (self->admitted_) verdict.emplace();
    hand_over(self->to_, self->call_, self->message_, std::move(verdict));
  }

  MethodHandler& to_;
  const Parameter call_;
  const bool admitted_;  // otherwise nobody asked who calls
  grpc_byte_buffer* message_ = nullptr;
  grpc::Alarm alarm_;  // its going ends it
};

class Handler : public MethodHandler {
 public:
  Handler(MethodHandler& behind, const GateRules& rules) : behind_(behind), rules_(rules) {}

  void RunHandler(const Parameter& call) override {
    const auto& context = static_cast<const grpc::CallbackServerContext&>(*call.server_context);
    const Result<core::Caller> caller =
        rules_.access ? rules_.access->caller_of(context) : core::Caller();
    if (caller) return Reading::start(behind_, call, rules_);
    hand_over(behind_, call, grpc_raw_byte_buffer_create(nullptr, 0), fail(caller.error()));
  }

 private:
  MethodHandler& behind_;
  const GateRules& rules_;
};

class Gate : public grpc::Service {
 public:
  Gate(std::unique_ptr<grpc::Service> service,
       const google::protobuf::ServiceDescriptor& descriptor, GateRules rules)
      : service_(std::move(service)), rules_(std::move(rules)) {
    for (int i = 0; i < descriptor.method_count(); ++i) {
      names_.push_back("/" + descriptor.full_name() + "/" + descriptor.method(i)->name());
      // As gRPC does it where a handler reads the one message of such a call itself.
      const auto type = grpc::internal::RpcMethod::BIDI_STREAMING;
      auto handler = std::make_unique<Handler>(handler_of(*service_, i), rules_);
      auto method =
          std::make_unique<RpcServiceMethod>(names_.back().c_str(), type, handler.release());
      method->SetServerApiType(RpcServiceMethod::ApiType::CALL_BACK);
      AddMethod(method.release());
    }
  }

 private:
  static MethodHandler& handler_of(grpc::Service& service, int method) {
    struct Open : grpc::Service {
      using grpc::Service::GetHandler;
    };
    return *(service.*(&Open::GetHandler))(method);
  }

  const std::unique_ptr<grpc::Service> service_;
  const GateRules rules_;
  std::list<std::string> names_;  // gRPC keeps pointers to them
};

std::unique_ptr<grpc::Service> make_gate(std::unique_ptr<grpc::Service> service,
                                         const std::string& name, GateRules rules) {
  const auto* descriptor =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(name);
  return std::make_unique<Gate>(std::move(service), *descriptor, std::move(rules));
}

}  // namespace

std::unique_ptr<grpc::Service> gated(std::unique_ptr<grpc::Service> service,
                                     const std::string& name, rpc::CallAccess access) {
  return make_gate(std::move(service), name,
                   {.access = std::move(access), .message_within = std::chrono::milliseconds(0)});
}

std::unique_ptr<grpc::Service> timed(std::unique_ptr<grpc::Service> service,
                                     const std::string& name, std::chrono::milliseconds within) {
  return make_gate(std::move(service), name, {.access = {}, .message_within = within});
}

const std::optional<Status>& verdict_at_gate() {
  return verdict_here();
}

}  // namespace berth::gateway
