#include "supervisor/admin/memory_state.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "common/durations.h"
#include "supervisor/admin/admins_only.h"
#include "supervisor/admin/convert.h"

namespace berth::admin {
namespace {

using Instances = std::vector<residency::InstanceSnapshot>;

const residency::InstanceSnapshot* find(const Instances& instances, const std::string& id) {
  const auto found = std::ranges::find(instances, id, &residency::InstanceSnapshot::id);
  return found == instances.end() ? nullptr : &*found;
}

void add(ChargedParts& to, std::uint64_t bytes, const core::Charge& terms, core::DomainIndex at) {
  // What the terms say, as far as it is charged: the rest is the process's.
  std::uint64_t left = bytes;
  const auto take = [&](const core::ChargeTerm& term) {
    const std::uint64_t part = std::min(left, term.bytes[at]);
    left -= part;
    return part;
  };
  to.weights += take(terms.weights);
  to.kv += take(terms.kv);
  to.working += take(terms.working);
  to.overhead += left;
}

v1::ChargeTerm term_message(const core::ChargeTerm& term, core::DomainIndex at) {
  v1::ChargeTerm to;
  to.set_bytes(term.bytes[at]);
  to.set_basis(std::string(core::basis_name(term.basis)));
  return to;
}

v1::ChargedInstance charge_of(const core::Entry& entry, const residency::InstanceSnapshot* instance,
                              const core::Snapshot& snapshot) {
  v1::ChargedInstance to;
  to.set_instance_id(entry.id.to_string());
  to.set_model(entry.model);
  to.set_state(instance == nullptr ? std::string(core::entry_state_name(entry.state))
                                   : instance->state);
  *to.mutable_charge() = charge_message(
      entry.charge, instance == nullptr ? core::Charge() : terms_of(*instance), snapshot.domains);
  to.set_pinned(entry.pinned);
  to.set_clients(entry.clients);
  to.set_idle_work(entry.soft);
  if (entry.state == core::EntryState::kReady && entry.clients == 0) {
    const auto idle = whole_milliseconds(snapshot.now - entry.idle_since);
    to.set_idle_ms(static_cast<std::uint64_t>(std::max<std::int64_t>(idle, 0)));
  }
  if (instance != nullptr) to.set_window(instance->plan.window);
  return to;
}

v1::MemoryPressure to_proto(const core::Pressure& pressure) {
  v1::MemoryPressure to;
  to.set_level(std::string(core::pressure_level_name(pressure.level)));
  to.set_source(std::string(core::pressure_source_name(pressure.source)));
  for (const core::PressureEvidence& evidence : pressure.evidence) {
    v1::PressureEvidence& one = *to.add_evidence();
    one.set_sign(std::string(core::pressure_sign_name(evidence.sign)));
    one.set_level(std::string(core::pressure_level_name(evidence.level)));
    one.set_source(std::string(core::pressure_source_name(evidence.source)));
    one.set_value(evidence.value);
    one.set_threshold(evidence.threshold);
    one.set_domain(evidence.domain);
  }
  return to;
}

// On the core strand.
v1::Memory memory_of(const ServerState& state) {
  const residency::Residency& residency = state.services.residency;
  const core::Snapshot snapshot = residency.memory_now();
  const Instances instances = residency.instances();
  const core::Caller admin{.role = core::Role::kAdmin};
  v1::Memory to;
  to.set_counted(!snapshot.domains.empty());
  for (const DomainUse& use : domain_use(snapshot, instances)) {
    *to.add_domains() = to_proto(use, admin);
  }
  for (const core::Entry& entry : snapshot.entries) {
    *to.add_instances() = charge_of(entry, find(instances, entry.id.to_string()), snapshot);
  }
  const WallTime wall = state.services.clock.wall_now();
  for (const residency::RoomWait& wait : residency.room_waits()) {
    v1::MemoryWait& one = *to.add_waiting();
    one.set_model(wait.model);
    one.set_waits_for(wait.what);
    for (const std::string& blocker : wait.blockers) one.add_blockers(blocker);
    *one.mutable_missing() = amounts(wait.missing, snapshot.domains);
    *one.mutable_held() = amounts(wait.held, snapshot.domains);
    one.set_since_unix_ms(wall.time_since_epoch().count() -
                          static_cast<std::int64_t>(whole_milliseconds(snapshot.now - wait.since)));
  }
  if (state.pressure) {
    if (const auto pressure = state.pressure()) *to.mutable_pressure() = to_proto(*pressure);
  }
  if (state.memory_problems) {
    for (std::string& problem : state.memory_problems()) *to.add_problems() = std::move(problem);
  }
  return to;
}

}  // namespace

std::vector<DomainUse> domain_use(const core::Snapshot& snapshot, const Instances& instances) {
  std::vector<DomainUse> all;
  const std::size_t count = std::min(snapshot.domains.size(), core::kMaxDomains);
  for (core::DomainIndex i = 0; i < count; ++i) {
    DomainUse& use = all.emplace_back();
    use.domain = snapshot.domains[i];
    use.bank = snapshot.bank[i];
  }
  for (const core::Entry& entry : snapshot.entries) {
    const residency::InstanceSnapshot* const instance = find(instances, entry.id.to_string());
    const core::Charge terms = instance == nullptr ? core::Charge() : terms_of(*instance);
    for (core::DomainIndex i = 0; i < count; ++i) add(all[i].charged, entry.charge[i], terms, i);
  }
  for (DomainUse& use : all) {
    const std::uint64_t taken = use.charged.sum() + use.bank;
    const std::uint64_t limit = use.domain.limit();
    use.available = limit > taken ? limit - taken : 0;
  }
  return all;
}

v1::DomainState to_proto(const DomainUse& use, const core::Caller& caller) {
  v1::DomainState to;
  to.set_id(use.domain.id);
  to.set_total_bytes(use.domain.total);
  to.set_available_bytes(use.available);
  if (!caller.admin()) return to;
  to.set_device(use.domain.device);
  to.set_budget_bytes(use.domain.budget);
  to.set_limit_bytes(use.domain.limit());
  to.set_foreign_bytes(use.domain.foreign);
  to.set_charged_bytes(use.charged.sum());
  v1::ChargeParts& parts = *to.mutable_charged();
  parts.set_weights_bytes(use.charged.weights);
  parts.set_kv_bytes(use.charged.kv);
  parts.set_working_bytes(use.charged.working);
  parts.set_overhead_bytes(use.charged.overhead);
  to.set_bank_bytes(use.bank);
  to.set_lost(use.domain.lost);
  return to;
}

v1::DomainState to_proto(const DomainMemory& memory) {
  v1::DomainState to;
  to.set_id(memory.id);
  if (memory.total) to.set_total_bytes(*memory.total);
  if (memory.available) to.set_available_bytes(*memory.available);
  return to;
}

google::protobuf::RepeatedPtrField<v1::DomainCharge> charge_message(const core::DomainBytes& bytes,
                                                                    const core::Charge& terms,
                                                                    const core::Domains& domains) {
  google::protobuf::RepeatedPtrField<v1::DomainCharge> all;
  const core::DomainBytes sum = terms.total();
  for (core::DomainIndex i = 0; i < std::min(domains.size(), core::kMaxDomains); ++i) {
    if (bytes[i] == 0) continue;
    v1::DomainCharge& to = *all.Add();
    to.set_domain(domains[i].id);
    to.set_bytes(bytes[i]);
    to.set_error_bytes(terms.error[i]);
    if (sum[i] == 0) continue;
    *to.mutable_weights() = term_message(terms.weights, i);
    *to.mutable_kv() = term_message(terms.kv, i);
    *to.mutable_working() = term_message(terms.working, i);
    *to.mutable_overhead() = term_message(terms.overhead, i);
  }
  return all;
}

google::protobuf::RepeatedPtrField<v1::DomainAmount> amounts(const core::DomainBytes& bytes,
                                                             const core::Domains& domains) {
  google::protobuf::RepeatedPtrField<v1::DomainAmount> all;
  for (core::DomainIndex i = 0; i < std::min(domains.size(), core::kMaxDomains); ++i) {
    if (bytes[i] == 0) continue;
    v1::DomainAmount& to = *all.Add();
    to.set_domain(domains[i].id);
    to.set_bytes(bytes[i]);
  }
  return all;
}

v1::Instance charged_instance(const residency::InstanceSnapshot& instance,
                              const core::Domains& domains, const core::Caller& caller) {
  v1::Instance to = to_proto(instance, caller);
  if (caller.admin()) {
    *to.mutable_charge() = charge_message(instance.charge, terms_of(instance), domains);
  }
  return to;
}

void get_memory(ServerState& state, const core::Caller& caller,
                std::function<void(Result<v1::Memory>)> done) {
  state.services.clock.post([&state, admin = caller.admin(), done = std::move(done)] {
    if (!admin) return done(fail(admins_only("see who has the memory")));
    v1::Memory memory = memory_of(state);
    if (memory.counted()) return done(std::move(memory));
    // The kernel's word, which is read on the pool.
    state.run_blocking([&state, memory = std::move(memory), done]() mutable {
      for (const DomainMemory& domain : state.domains()) *memory.add_domains() = to_proto(domain);
      state.services.clock.post(
          [memory = std::move(memory), done]() mutable { done(std::move(memory)); });
    });
  });
}

}  // namespace berth::admin
