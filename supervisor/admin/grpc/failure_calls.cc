#include "supervisor/admin/grpc/failure_calls.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "berth/v1/admin.grpc.pb.h"
#include "supervisor/admin/failure_list.h"
#include "supervisor/admin/grpc/convert.h"
#include "supervisor/admin/grpc/convert_failure.h"
#include "supervisor/process/log_file.h"
#include "supervisor/rpc/error_detail.h"

namespace berth::admin {
namespace {

// gRPC refuses messages of more than 4 MiB by default; one record is far below the rest.
constexpr std::size_t kMostBytes = 2UL * 1024UL * 1024UL;
constexpr std::size_t kPastLoads = 10;
constexpr std::size_t kPastFailures = 5;

using Records = std::vector<core::FailureRecord>;

// One such call; the callbacks of the store and the core strand share it.
struct Call {
  grpc::CallbackServerContext& context;
  grpc::ServerUnaryReactor& reactor;
  ServerState& state;
  CallFrom from;

  [[nodiscard]] rpc::Audience audience() const { return from.audience(); }
  void end_badly(const Error& error) const {
    rpc::finish_badly(context, reactor, from.detail(error), error);
  }
};

Call call_of(grpc::CallbackServerContext& context, ServerState& state, CallFrom from) {
  return {context, *context.DefaultReactor(), state, std::move(from)};
}

void list(const Call& call, const Records& records, std::size_t limit,
          v1::ListFailuresResponse& response) {
  std::size_t bytes = 0;
  for (const core::FailureRecord& record : records) {
    if (static_cast<std::size_t>(response.failures_size()) == limit) {
      response.set_more(true);
      break;
    }
    v1::FailureRecord message = to_proto(record, call.audience());
    bytes += message.ByteSizeLong();
    if (bytes > kMostBytes) {
      response.set_more(true);
      break;
    }
    *response.add_failures() = std::move(message);
  }
  call.reactor.Finish(grpc::Status::OK);
}

void put_present(ServerState& state, const std::string& model, v1::ModelReport& report) {
  report.set_model(model);
  report.set_state(state.services.residency.state_of(model));
  const auto found = state.services.catalog()->find(model);
  report.set_problem(found ? (*found)->problem : "Its file is not in the catalogue any more.");
}

void put_instance(const Call& call, const std::string& model, v1::ModelReport& report) {
  for (const residency::InstanceSnapshot& instance : call.state.services.residency.instances()) {
    if (instance.model != model || instance.state == "gone") continue;
    v1::Instance& to = *report.mutable_instance();
    to = to_proto(instance, call.audience());
  }
}

void put_failures(const Call& call, const Records& standing, const Records& kept,
                  v1::ModelReport& report) {
  for (const core::FailureRecord& record : standing_first(standing, kept)) {
    if (!record.lifted) {
      *report.mutable_standing() = to_proto(record, call.audience());
    } else if (static_cast<std::size_t>(report.lifted_size()) < kPastFailures) {
      *report.add_lifted() = to_proto(record, call.audience());
    }
  }
}

// What it says of a model that is known neither to the catalogue nor to the ledger.
bool is_unknown(const Result<std::string>& known, const Records& standing, const Records& kept) {
  return !known && standing.empty() && kept.empty();
}

void explain(const Call& call, const std::string& model, const Result<std::string>& known,
             const Result<Records>& kept, v1::ModelReport& report) {
  const Records standing = failures_of(call.state.services.residency.standing_failures(), model);
  if (is_unknown(known, standing, kept ? *kept : Records())) return call.end_badly(known.error());
  put_present(call.state, model, report);
  put_instance(call, model, report);
  put_failures(call, standing, kept ? *kept : Records(), report);
  if (call.audience() == rpc::Audience::kAdmin) {
    report.set_log_file(process::log_path(call.state.config->server.log_dir, model));
  }
  if (report.has_standing() && report.state() == "absent") report.set_state("failed");
  if (!kept) report.set_history_problem(kept.error().message);
  call.state.store.loads(model, kPastLoads,
                         [call, &report](Result<std::vector<store::LoadRecord>> loads) {
                           if (!loads) {
                             report.set_history_problem(loads.error().message);
                           } else {
                             for (const store::LoadRecord& load : *loads)
                               *report.add_loads() = to_proto(load);
                           }
                           call.reactor.Finish(grpc::Status::OK);
                         });
}

}  // namespace

grpc::ServerUnaryReactor* start_list_failures(grpc::CallbackServerContext& context,
                                              ServerState& state, CallFrom from,
                                              const v1::ListFailuresRequest& request,
                                              v1::ListFailuresResponse& response) {
  const Call call = call_of(context, state, std::move(from));
  const std::size_t limit = failure_limit(request.limit());
  state.services.clock.post([call, limit, history = request.history(), name = request.model(),
                             &response] {
    const Result<std::string> known = name.empty() ? name : call.state.name_of(name);
    const std::string model = known ? *known : name;
    if (known && !history) {
      Records standing = failures_of(call.state.services.residency.standing_failures(), model);
      return list(call, standing, limit, response);
    }
    // One more tells whether there are more; those that stand may be among them.
    call.state.store.failures(
        model, limit + 1, [call, limit, history, model, known, &response](Result<Records> kept) {
          Records standing = failures_of(call.state.services.residency.standing_failures(), model);
          if (!kept) return call.end_badly(kept.error());
          if (is_unknown(known, standing, *kept)) return call.end_badly(known.error());
          if (!history) kept->clear();
          list(call, standing_first(std::move(standing), *std::move(kept)), limit, response);
        });
  });
  return &call.reactor;
}

grpc::ServerUnaryReactor* start_explain(grpc::CallbackServerContext& context, ServerState& state,
                                        CallFrom from, const v1::ExplainModelRequest& request,
                                        v1::ModelReport& response) {
  const Call call = call_of(context, state, std::move(from));
  state.services.clock.post([call, name = request.model(), &response] {
    const Result<std::string> known = call.state.name_of(name);
    const std::string model = known ? *known : name;
    // One more than is told: the one that stands may be among them.
    call.state.store.failures(model, kPastFailures + 1,
                              [call, model, known, &response](const Result<Records>& kept) {
                                explain(call, model, known, kept, response);
                              });
  });
  return &call.reactor;
}

}  // namespace berth::admin
