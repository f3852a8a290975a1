#include "supervisor/admin/memory_plan.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/durations.h"
#include "common/units.h"
#include "supervisor/admin/admins_only.h"
#include "supervisor/admin/memory_state.h"
#include "supervisor/core/memory/plan_words.h"
#include "supervisor/rpc/error_detail.h"
#include "supervisor/rpc/failure_message.h"

namespace berth::admin {
namespace {

Error invalid(const std::string& param, std::string message) {
  ErrorExtras extras;
  extras.param = param;
  return {Reason::kInvalidArgument, std::move(message), std::move(extras)};
}

Status in_range(const std::string& name, std::optional<std::uint32_t> value, std::uint32_t low,
                std::uint32_t high) {
  if (!value || (*value >= low && *value <= high)) return {};
  return fail(invalid(name, name + " has to be " + std::to_string(low) + " to " +
                                std::to_string(high) + ", not " + std::to_string(*value) + "."));
}

// The model with other settings, as the configuration may have them.
Result<catalog::Model> with_settings(const catalog::Model& model, const PlanAsk& ask) {
  catalog::Model other = model;
  if (!ask.context && !ask.sequences) return other;
  if (model.settings.kind == catalog::Kind::kCommand) {
    return fail(invalid(ask.context ? "context" : "sequences",
                        model.name + " is a command: what it takes is declared, whatever its "
                                     "context and sequences are."));
  }
  if (Status fits = in_range("context", ask.context, catalog::kMinContext, catalog::kMaxContext);
      !fits) {
    return fail(fits.error());
  }
  if (Status fits = in_range("sequences", ask.sequences, 1, catalog::kMaxSequences); !fits) {
    return fail(fits.error());
  }
  if (ask.context) {
    other.settings.context = ask.context;
    other.served_context = *ask.context;
  }
  if (ask.sequences) other.settings.sequences = *ask.sequences;
  const std::uint32_t batch = other.settings.batch;
  if (batch != 0 && batch < other.settings.sequences) {
    return fail(invalid("sequences", "The configuration's batch = " + std::to_string(batch) +
                                         " is too small for so many sequences."));
  }
  return other;
}

bool is_there(const std::string& state) {
  constexpr std::array<std::string_view, 4> kThere = {"starting", "loading", "ready", "busy"};
  return std::ranges::find(kThere, state) != kThere.end();
}

std::vector<std::string> models_of(const std::vector<Uuid>& ids, const core::Snapshot& snapshot) {
  std::vector<std::string> models;
  for (const core::Entry& entry : snapshot.entries) {
    if (std::ranges::find(ids, entry.id) != ids.end()) models.push_back(entry.model);
  }
  std::ranges::sort(models);
  models.erase(std::unique(models.begin(), models.end()), models.end());
  return models;
}

// What of a decision stands in fields of its own.
class Put {
 public:
  Put(const core::Snapshot& snapshot, v1::ModelPlan& to) : snapshot_(snapshot), to_(to) {}

  void operator()(const core::Fits& /*it*/) const {}
  void operator()(const core::ShrinkBank& it) const { bank(it.bank); }
  void operator()(const core::Evict& it) const {
    victims(it.victims);
    bank(it.bank);
  }
  void operator()(const core::PreEmpt& it) const {
    for (const core::IdleJob& job : snapshot_.jobs) {
      if (std::ranges::find(it.jobs, job.id) == it.jobs.end()) continue;
      v1::PlanJob& one = *to_.add_jobs();
      one.set_id(job.id.to_string());
      one.set_kind(job.kind);
      one.set_model(job.model);
    }
    to_.set_within_ms(static_cast<std::uint64_t>(whole_milliseconds(it.within)));
    victims(it.victims);
    bank(it.bank);
  }
  void operator()(const core::Park& it) const {
    to_.set_waits_for(std::string(core::park_name(it.what)));
    for (std::string& model : models_of(it.blockers, snapshot_)) {
      *to_.add_blockers() = std::move(model);
    }
    if (to_.blockers().empty() && !it.older.empty()) to_.add_blockers(it.older);
    if (it.again) {
      const auto again = whole_milliseconds(*it.again - snapshot_.now);
      to_.set_again_ms(static_cast<std::uint64_t>(std::max<std::int64_t>(again, 0)));
    }
  }
  void operator()(const core::Refuse& it) const {
    to_.set_refusal(std::string(core::refusal_name(it.why)));
    for (const std::string& model : it.models) to_.add_blockers(model);
    for (const std::string& device : it.devices) to_.add_missing_devices(device);
  }

 private:
  void bank(const core::DomainBytes& bytes) const {
    *to_.mutable_bank() = amounts(bytes, snapshot_.domains);
  }
  void victims(const std::vector<core::Victim>& all) const {
    for (const core::Victim& victim : all) {
      v1::PlanVictim& one = *to_.add_victims();
      one.set_instance_id(victim.id.to_string());
      one.set_model(victim.model);
      one.set_kind(std::string(core::victim_kind_name(victim.kind)));
      *one.mutable_charge() = amounts(victim.charge, snapshot_.domains);
      one.set_cost_seconds(victim.cost_seconds);
    }
  }

  const core::Snapshot& snapshot_;
  v1::ModelPlan& to_;
};

core::DomainBytes deficit_of(const core::Decision& decision) {
  const auto* const refuse = std::get_if<core::Refuse>(&decision);
  return refuse == nullptr ? core::DomainBytes() : refuse->deficit;
}

// What there is too little of now, as the decision's sentence counts it.
struct MissingNow {
  const core::DomainBytes& needed;
  const core::DomainBytes& charged;
  const core::Domains& domains;

  core::DomainBytes operator()(const core::Fits& /*it*/) const { return {}; }
  core::DomainBytes operator()(const core::ShrinkBank& /*it*/) const { return {}; }
  core::DomainBytes operator()(const core::Evict& it) const { return it.missing; }
  core::DomainBytes operator()(const core::PreEmpt& it) const { return it.missing; }
  core::DomainBytes operator()(const core::Park& it) const { return it.missing; }
  core::DomainBytes operator()(const core::Refuse& /*it*/) const {
    core::DomainBytes limits;
    for (core::DomainIndex i = 0; i < std::min(domains.size(), core::kMaxDomains); ++i) {
      limits[i] = domains[i].limit();
    }
    return core::only_where(needed + charged - limits, needed);
  }
};

// What the charge is in each domain, beside what is there.
void put_domains(const residency::PlanReport& report, const core::DomainBytes& needed,
                 v1::ModelPlan& to) {
  const core::Snapshot& snapshot = report.snapshot;
  const core::DomainBytes deficit = deficit_of(report.decision);
  const auto* const refuse = std::get_if<core::Refuse>(&report.decision);
  core::DomainBytes charged;
  for (const core::Entry& entry : snapshot.entries) charged += entry.charge;
  const core::DomainBytes missing =
      std::visit(MissingNow{needed, charged, snapshot.domains}, report.decision);
  for (v1::DomainCharge& charge : charge_message(needed, report.launch.terms, snapshot.domains)) {
    v1::DomainPlan& one = *to.add_domains();
    one.set_domain(charge.domain());
    one.set_needed_bytes(charge.bytes());
    const auto at = static_cast<core::DomainIndex>(
        std::ranges::find(snapshot.domains, charge.domain(), &core::Domain::id) -
        snapshot.domains.begin());
    // A refusal's own numbers: of one that never fits they are without other people's programs.
    const std::uint64_t limit =
        refuse == nullptr ? snapshot.domains[at].limit() : refuse->limit[at];
    const std::uint64_t available =
        refuse == nullptr ? (limit > charged[at] ? limit - charged[at] : 0) : refuse->available[at];
    one.set_limit_bytes(limit);
    one.set_available_bytes(available);
    one.set_missing_bytes(missing[at]);
    one.set_deficit_bytes(deficit[at]);
    *one.mutable_charge() = std::move(charge);
  }
}

void put_layers(const core::Placement& placement, const core::Domains& domains, v1::ModelPlan& to) {
  for (const core::Placement::Share& share : placement.shares) {
    if (share.device >= domains.size()) continue;
    v1::LayerShare& one = *to.add_layers();
    one.set_domain(domains[share.device].id);
    one.set_layers(share.layers);
  }
}

// Its instance is there: whoever asks is served by it.
v1::ModelPlan plan_of_resident(const residency::InstanceSnapshot& instance,
                               const catalog::Model& model, const residency::PlanReport& report) {
  v1::ModelPlan to;
  to.set_model(model.name);
  to.set_decision("resident");
  to.set_uncounted(instance.charge.empty());
  residency::PlanReport as_it_is;
  as_it_is.snapshot = report.snapshot;
  as_it_is.launch = instance.plan;
  as_it_is.launch.terms = terms_of(instance);
  // Its own charge is no part of what is left for it.
  std::erase_if(as_it_is.snapshot.entries,
                [&](const core::Entry& entry) { return entry.id.to_string() == instance.id; });
  put_domains(as_it_is, instance.charge, to);
  put_layers(instance.plan.at.placement, report.snapshot.domains, to);
  to.set_window(instance.window > 0 ? instance.window : instance.plan.window);
  if (instance.plan.bound) {
    to.set_window_bound(std::string(core::window_bound_name(*instance.plan.bound)));
  }
  to.set_sequences(instance.sequences > 0 ? instance.sequences : model.settings.sequences);
  std::string takes;
  for (const v1::DomainPlan& domain : to.domains()) {
    takes += (takes.empty() ? ": it takes " : " and ") + format_bytes(domain.needed_bytes()) +
             " of " + domain.domain();
  }
  to.set_sentence(model.name + " is " + instance.state + takes + ".");
  return to;
}

}  // namespace

v1::ModelPlan to_proto(const residency::PlanReport& report, const catalog::Model& model,
                       const core::Caller& caller) {
  v1::ModelPlan to;
  to.set_model(model.name);
  to.set_decision(std::string(core::decision_name(report.decision)));
  to.set_window(report.launch.window > 0 ? report.launch.window : model.served_context);
  if (report.launch.bound) {
    to.set_window_bound(std::string(core::window_bound_name(*report.launch.bound)));
  }
  to.set_sequences(model.settings.sequences);
  if (!report.counted) {
    to.set_uncounted(true);
    to.set_sentence(report.snapshot.domains.empty()
                        ? "No memory is counted here: " + model.name + " is started at once."
                        : "Nothing is known of what " + model.name +
                              " takes: it is started at once, without a charge.");
    return to;
  }
  to.set_sentence(core::sentence_of(report.decision, report.snapshot, report.need));
  put_layers(report.launch.at.placement, report.snapshot.domains, to);
  put_domains(report, report.launch.at.bytes, to);
  std::visit(Put(report.snapshot, to), report.decision);
  if (report.refusal) {
    *to.mutable_error() = rpc::to_proto(
        *report.refusal, {}, caller.admin() ? rpc::Audience::kAdmin : rpc::Audience::kClient);
    if (to.error().has_would_fit()) *to.mutable_would_fit() = to.error().would_fit();
  }
  return to;
}

namespace {

// Now, of a model whose files may be loaded; core strand.
v1::ModelPlan plan_now(const residency::Residency& residency, const catalog::Model& model,
                       const PlanAsk& ask) {
  const bool anew = ask.context || ask.sequences;
  const residency::PlanReport report = residency.plan(model, anew);
  v1::ModelPlan plan = to_proto(report, model, ask.caller);
  if (const auto* const refuse = std::get_if<core::Refuse>(&report.decision)) {
    for (const std::string& blocker : refuse->models) {
      if (residency.pinned_by_configuration(blocker)) plan.add_pinned_by_configuration(blocker);
    }
  }
  for (const residency::InstanceSnapshot& instance : residency.instances()) {
    if (anew || instance.model != model.name || !is_there(instance.state)) continue;
    plan = plan_of_resident(instance, model, report);
  }
  for (const core::FailureRecord& record : residency.standing_failures()) {
    if (record.model == model.name) *plan.mutable_failure() = rpc::to_brief(record, ask.caller);
  }
  return plan;
}

// Nobody looks at its files for that.
bool is_settled(const v1::ModelPlan& plan) {
  return plan.has_failure() || plan.decision() == "resident" || plan.decision() == "refuse";
}

// A model that fits is loaded whatever a look at its files finds: that tells what becomes of it
// only where it finds what no load survives.
bool needs_its_files(const v1::ModelPlan& plan, const catalog::Model& model, const Error& found) {
  if (is_settled(plan)) return false;
  const bool lasts = found.extras && found.extras->failure;
  return plan.decision() != "fits" || (lasts && model.parts_problem.empty());
}

Error not_loadable(const catalog::Model& model, const Error& found) {
  if (!found.extras) return found;
  if (!found.extras->failure) {
    return {Reason::kLoadFailed,
            model.name +
                " cannot be planned yet: its files were replaced or written to and are "
                "looked at again. Ask again in a moment.",
            *found.extras};
  }
  return {Reason::kLoadFailed, model.name + " cannot be loaded: " + found.extras->failure->reason,
          *found.extras};
}

}  // namespace

void plan_model(ServerState& state, PlanAsk ask, std::function<void(Result<v1::ModelPlan>)> done) {
  state.services.clock.post([&state, ask = std::move(ask), done = std::move(done)] {
    if (!ask.caller.admin()) return done(fail(admins_only("see the memory plan")));
    const auto found = state.services.catalog()->find(ask.model);
    if (!found) return done(fail(found.error()));
    if (!(*found)->problem.empty()) {
      return done(
          fail(Reason::kLoadFailed, (*found)->name + " cannot be loaded: " + (*found)->problem));
    }
    Result<catalog::Model> model = with_settings(**found, ask);
    if (!model) return done(fail(model.error()));
    v1::ModelPlan plan = plan_now(state.services.residency, *model, ask);
    if (is_settled(plan)) return done(std::move(plan));
    // What a load would find, or be told before anything is unloaded for it (L25).
    state.services.residency.check(
        *found, [&residency = state.services.residency, model = *std::move(model), ask = ask,
                 done = done](const Status& loadable) {
          v1::ModelPlan now = plan_now(residency, model, ask);
          if (loadable || !needs_its_files(now, model, loadable.error())) {
            return done(std::move(now));
          }
          done(fail(not_loadable(model, loadable.error())));
        });
  });
}

void pin_model(ServerState& state, std::string model, const core::Caller& caller,
               std::function<void(Result<v1::PinModelResponse>)> done) {
  state.services.clock.post(
      [&state, model = std::move(model), admin = caller.admin(), done = std::move(done)] {
        if (!admin) return done(fail(admins_only("pin a model")));
        const auto found = state.services.catalog()->find(model);
        if (!found) return done(fail(found.error()));
        residency::Residency& residency = state.services.residency;
        v1::PinModelResponse response;
        response.set_model((*found)->name);
        response.set_was_pinned(residency.pinned((*found)->name));
        if (const Status pinned = residency.pin(*found); !pinned) return done(fail(pinned.error()));
        response.set_resident(is_there(residency.state_of((*found)->name)));
        done(std::move(response));
      });
}

void unpin_model(ServerState& state, std::string model, const core::Caller& caller,
                 std::function<void(Result<v1::UnpinModelResponse>)> done) {
  state.services.clock.post(
      [&state, model = std::move(model), admin = caller.admin(), done = std::move(done)] {
        if (!admin) return done(fail(admins_only("unpin a model")));
        residency::Residency& residency = state.services.residency;
        const Result<std::string> name = state.name_of(model);
        if (!name && !residency.pinned(model)) return done(fail(name.error()));
        v1::UnpinModelResponse response;
        response.set_model(name.value_or(model));
        response.set_was_pinned(residency.unpin(response.model()));
        response.set_by_configuration(residency.pinned(response.model()));
        done(std::move(response));
      });
}

}  // namespace berth::admin
