#include "supervisor/admin/failures.h"

#include <memory>
#include <utility>
#include <vector>

#include "supervisor/admin/convert_failure.h"
#include "supervisor/admin/failure_list.h"
#include "supervisor/admin/memory_state.h"
#include "supervisor/core/entitlement.h"
#include "supervisor/process/log_file.h"

namespace berth::admin {
namespace {

// gRPC refuses messages of more than 4 MiB by default; one record is far below the rest.
constexpr std::size_t kMostBytes = 2UL * 1024UL * 1024UL;
constexpr std::size_t kPastLoads = 10;
constexpr std::size_t kPastFailures = 5;

using Records = std::vector<core::FailureRecord>;
using Done = std::function<void(Result<v1::ModelReport>)>;

v1::ListFailuresResponse list(const Records& records, std::size_t limit,
                              const core::Caller& caller) {
  v1::ListFailuresResponse response;
  std::size_t bytes = 0;
  for (const core::FailureRecord& record : records) {
    if (static_cast<std::size_t>(response.failures_size()) == limit) {
      response.set_more(true);
      break;
    }
    v1::FailureRecord message = to_proto(record, caller);
    bytes += message.ByteSizeLong();
    if (bytes > kMostBytes) {
      response.set_more(true);
      break;
    }
    *response.add_failures() = std::move(message);
  }
  return response;
}

Records standing_of(const ServerState& state, const std::string& model) {
  return failures_of(state.services.residency.standing_failures(), model);
}

// What it says of a model that is known neither to the catalogue nor to the ledger.
bool is_unknown(const Result<std::string>& known, const Records& standing, const Records& kept) {
  return !known && standing.empty() && kept.empty();
}

// It names the database's file: clients get the error table's sentence.
std::string history_problem(const Error& error, const core::Caller& caller) {
  return caller.admin() ? error.message : std::string(reason_info(error.reason).sentence);
}

void put_present(const ServerState& state, const std::string& model, const core::Caller& caller,
                 v1::ModelReport& report) {
  report.set_model(model);
  report.set_state(state.services.residency.state_of(model));
  const auto found = state.services.catalog()->find(model);
  report.set_problem(
      found ? core::model_problem_for(state.services.residency.now_of(**found).problem, caller)
            : "Its file is not in the catalogue any more.");
}

void put_failures(const Records& standing, const Records& kept, const core::Caller& caller,
                  v1::ModelReport& report) {
  for (const core::FailureRecord& record : standing_first(standing, kept)) {
    if (!record.lifted) {
      *report.mutable_standing() = to_proto(record, caller);
    } else if (static_cast<std::size_t>(report.lifted_size()) < kPastFailures) {
      *report.add_lifted() = to_proto(record, caller);
    }
  }
}

void put_instance(const ServerState& state, const std::string& model, const core::Caller& caller,
                  v1::ModelReport& report) {
  for (const residency::InstanceSnapshot& instance : state.services.residency.instances()) {
    if (instance.model != model || instance.state == "gone") continue;
    *report.mutable_instance() =
        charged_instance(instance, state.services.residency.memory_now().domains, caller);
  }
}

void explain(ServerState& state, const std::string& model, const core::Caller& caller,
             const Result<std::string>& known, const Result<Records>& kept, const Done& done) {
  const Records standing = standing_of(state, model);
  if (is_unknown(known, standing, kept ? *kept : Records())) return done(fail(known.error()));
  const auto report = std::make_shared<v1::ModelReport>();
  put_present(state, model, caller, *report);
  put_instance(state, model, caller, *report);
  put_failures(standing, kept ? *kept : Records(), caller, *report);
  if (caller.admin()) {
    report->set_log_file(process::log_path(state.config->server.log_dir, model));
  }
  if (report->has_standing() && report->state() == "absent") report->set_state("failed");
  if (!kept) report->set_history_problem(history_problem(kept.error(), caller));
  state.store.loads(model, kPastLoads,
                    [report, caller, done](const Result<std::vector<store::LoadRecord>>& loads) {
                      if (!loads) {
                        report->set_history_problem(history_problem(loads.error(), caller));
                      } else {
                        for (const store::LoadRecord& load : *loads)
                          *report->add_loads() = to_proto(load, caller);
                      }
                      done(std::move(*report));
                    });
}

void list_known(ServerState& state, const FailureAsk& ask,
                const std::function<void(Result<v1::ListFailuresResponse>)>& done) {
  const Result<std::string> known = ask.model.empty() ? ask.model : state.name_of(ask.model);
  const std::string model = known ? *known : ask.model;
  const std::size_t limit = failure_limit(ask.limit);
  const core::Caller& caller = ask.caller;
  if (known && !ask.history) return done(list(standing_of(state, model), limit, caller));
  // One more tells whether there are more; those that stand may be among them.
  state.store.failures(
      model, limit + 1,
      [&state, limit, caller, history = ask.history, model, known, done](Result<Records> kept) {
        Records standing = standing_of(state, model);
        if (!kept) return done(fail(kept.error()));
        if (is_unknown(known, standing, *kept)) return done(fail(known.error()));
        if (!history) kept->clear();
        done(list(standing_first(std::move(standing), *std::move(kept)), limit, caller));
      });
}

}  // namespace

void list_failures(ServerState& state, FailureAsk ask,
                   std::function<void(Result<v1::ListFailuresResponse>)> done) {
  state.services.clock.post(
      [&state, ask = std::move(ask), done = std::move(done)] { list_known(state, ask, done); });
}

void explain_model(ServerState& state, std::string model, core::Caller caller,
                   std::function<void(Result<v1::ModelReport>)> done) {
  state.services.clock.post([&state, name = std::move(model), caller = std::move(caller),
                             done = std::move(done)] {
    const Result<std::string> known = state.name_of(name);
    const std::string model_name = known ? *known : name;
    // One more than is told: the one that stands may be among them.
    state.store.failures(model_name, kPastFailures + 1,
                         [&state, model_name, caller, known, done](const Result<Records>& kept) {
                           explain(state, model_name, caller, known, kept, done);
                         });
  });
}

}  // namespace berth::admin
