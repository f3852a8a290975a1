#include "supervisor/measured_loads.h"

#include <algorithm>
#include <array>
#include <utility>

#include "supervisor/core/failure.h"
#include "supervisor/core/ledger/failure_memory.h"
#include "supervisor/core/log/allocation_size.h"
#include "supervisor/core/memory/measured_doubt.h"

namespace berth {
namespace {

bool lacked_memory(const core::FailureRecord& record) {
  return record.failure_class == core::FailureClass::kResource ||
         record.failure_class == core::FailureClass::kOom;
}

std::optional<core::RefusedAllocation> refusal_in(const core::FailureRecord& record) {
  std::vector<std::string> lines = record.log_tail;
  lines.push_back(record.reason);
  return core::refused_allocation(lines);
}

bool is_declared(const core::Charge& charge) {
  return std::ranges::any_of(
      std::array{charge.weights, charge.kv, charge.working, charge.overhead},
      [](const core::ChargeTerm& term) { return term.basis == core::Basis::kDeclared; });
}

}  // namespace

MeasuredLoads::~MeasuredLoads() {
  *self_ = nullptr;
}

// --- what is kept

void MeasuredLoads::begin(std::function<void()> done) {
  read_ = std::move(done);
  ask();
}

void MeasuredLoads::ask() {
  parts_.store.measured([self = self_](Result<store::MeasuredRecords> read) {
    if (*self != nullptr) (*self)->on_read(std::move(read));
  });
}

void MeasuredLoads::on_read(Result<store::MeasuredRecords> read) {
  if (read) {
    // The youngest first. What was measured meanwhile is younger.
    for (store::MeasuredRecord& record : read->records) {
      if (records_.size() >= store::Store::kMeasuredKept) break;
      if (record.measured.loads > 0) last_.try_emplace(record.model, record.key);
      std::string key = record.key;
      if (records_.contains(key)) continue;
      untried_.insert(key);
      records_.emplace(std::move(key), std::move(record));
    }
    if (read->unreadable > 0) {
      parts_.events.emit_typed(events::ServerDegraded{
          .part = "store",
          .problem = std::to_string(read->unreadable) +
                     " records of what loads took cannot be read; the next load of each of those "
                     "models is measured again."});
    }
  } else {
    if (!std::exchange(told_, true)) {
      parts_.events.emit_typed(events::ServerDegraded{
          .part = "store",
          .problem = "What earlier loads took is not known, so that it is estimated: " +
                     read.error().message});
    }
    again_ = parts_.clock.sleep_for(kReadAgain, [this] { ask(); });
  }
  if (const auto done = std::exchange(read_, nullptr)) done();
}

std::string MeasuredLoads::key(core::Provenance provenance, std::uint32_t window,
                               const core::Placement& placement) const {
  if (window > 0) provenance.window = window;
  return core::measurement_key(provenance, placement, parts_.table().domains);
}

const core::MeasuredLoad* MeasuredLoads::find(const std::string& key) {
  const store::MeasuredRecord* const record = trusted(key);
  return record == nullptr ? nullptr : &record->measured;
}

const store::MeasuredRecord* MeasuredLoads::last_of(const std::string& model) {
  const auto last = last_.find(model);
  return last == last_.end() ? nullptr : trusted(std::string(last->second));
}

store::MeasuredRecord* MeasuredLoads::trusted(const std::string& key) {
  const auto at = records_.find(key);
  if (at == records_.end()) return nullptr;
  store::MeasuredRecord& record = at->second;
  const core::DomainTable& table = parts_.table();
  // As long as the domains are not known nothing is planned by them either.
  if (table.domains.empty() || untried_.erase(key) == 0) return &record;
  const auto doubt =
      core::doubt_of(record.measured, table.domains, parts_.main_memory ? parts_.main_memory() : 0);
  if (!doubt) return &record;
  parts_.events.emit_typed(events::MeasurementRefused{.model = record.model, .problem = *doubt});
  forget(key);
  return nullptr;
}

void MeasuredLoads::forget(const std::string& key) {
  std::erase_if(last_, [&](const auto& last) { return last.second == key; });
  untried_.erase(key);
  records_.erase(key);
}

store::MeasuredRecord& MeasuredLoads::record_of(const Running& running) {
  if (store::MeasuredRecord* const known = trusted(running.key)) return *known;
  if (records_.size() >= store::Store::kMeasuredKept) make_room();
  store::MeasuredRecord& record = records_[running.key];
  record.key = running.key;
  record.model = running.model;
  record.changed = parts_.clock.wall_now();
  return record;
}

void MeasuredLoads::make_room() {
  const auto oldest = std::ranges::min_element(
      records_, {}, [](const auto& record) { return record.second.changed; });
  forget(std::string(oldest->first));
}

void MeasuredLoads::keep(store::MeasuredRecord& record) {
  record.changed = parts_.clock.wall_now();
  parts_.store.put_measured(record);
}

// --- what happens

void MeasuredLoads::launched(const residency::MeteredLoad& load) {
  Running& running = running_[load.instance];
  // A command has neither window nor placement: its own arguments say where it goes.
  const bool is_command = load.model->settings.kind == catalog::Kind::kCommand;
  running.key = is_command ? key(load.provenance, 0, {})
                           : key(load.provenance, load.plan.window, load.plan.at.placement);
  running.model = load.model->name;
  running.pid = load.pid;
  running.plan = load.plan;
  running.is_command = is_command;
}

// What is no device's is in the host: buffers of the processor, or such that a device reads there.
core::DomainIndex MeasuredLoads::domain_of(const std::string& device) const {
  const auto& devices = parts_.table().by_device;
  const auto at = devices.find(device);
  return at == devices.end() ? core::kHostDomain : at->second;
}

std::vector<core::MeasuredDomain> MeasuredLoads::domains_of(const rpc::WorkerReady& ready) const {
  const core::DomainTable& table = parts_.table();
  std::vector<core::MeasuredDomain> domains;
  for (const rpc::MemoryUse& use : ready.memory) {
    const core::DomainIndex at = domain_of(use.domain);
    if (at >= table.domains.size()) continue;
    const std::string& id = table.domains[at].id;
    auto row = std::ranges::find(domains, id, &core::MeasuredDomain::domain);
    if (row == domains.end()) {
      row = domains.insert(domains.end(), core::MeasuredDomain());
      row->domain = id;
    }
    row->weights += use.weights_bytes;
    row->mapped += use.mapped_bytes;
    row->kv += use.kv_bytes;
    row->working += use.working_bytes;
  }
  return domains;
}

std::optional<residency::MeasuredCharge> MeasuredLoads::loaded(const Uuid& instance,
                                                               const rpc::WorkerReady& ready) {
  const auto at = running_.find(instance);
  if (at == running_.end()) return std::nullopt;
  Running& running = at->second;
  running.ready = true;
  store::MeasuredRecord& record = record_of(running);
  core::add_report(record.measured, domains_of(ready));
  record.model = running.model;
  record.predicted.clear();
  const core::Domains& domains = parts_.table().domains;
  for (std::size_t i = 0; i < std::min(domains.size(), core::kMaxDomains); ++i) {
    const auto domain = static_cast<core::DomainIndex>(i);
    const std::uint64_t charge = running.plan.at.bytes[domain];
    if (charge == 0) continue;
    record.predicted.push_back({domains[i].id, charge, running.plan.terms.overhead.bytes[domain]});
  }
  for (std::size_t i = 0; i < std::min(domains.size(), core::kMaxDomains); ++i) {
    const std::uint64_t most = running.most[static_cast<core::DomainIndex>(i)];
    if (most > 0) core::add_process(record.measured, domains[i].id, most);
  }
  last_[running.model] = running.key;
  keep(record);
  running.written = running.most;
  running.charge = charge_of(running);
  return running.charge;
}

// What is measured of a domain replaces what was predicted for it; the rest stays as it was
// charged.
residency::MeasuredCharge MeasuredLoads::charge_of(const Running& running) const {
  residency::MeasuredCharge charge{running.plan.at.bytes, running.plan.terms};
  const auto record = records_.find(running.key);
  if (record == records_.end()) return charge;
  const core::MeasuredLoad& measured = record->second.measured;
  const core::Domains& domains = parts_.table().domains;
  charge.terms = core::with_measured(running.plan.terms, measured, domains);
  const core::DomainBytes known = charge.terms.total();
  core::DomainBytes& bytes = charge.bytes;
  const bool declared = is_declared(running.plan.terms);
  for (std::size_t i = 0; i < std::min(domains.size(), core::kMaxDomains); ++i) {
    const auto domain = static_cast<core::DomainIndex>(i);
    const core::MeasuredDomain* const row = measured.find(domains[i].id);
    if (row == nullptr || (row->weights + row->kv + row->working == 0 && !row->process)) continue;
    // Of a sum whose terms are not known, none can be replaced.
    const bool only_grows = declared || running.plan.terms.total()[domain] != bytes[domain];
    bytes[domain] = only_grows ? std::max(bytes[domain], known[domain]) : known[domain];
  }
  return charge;
}

void MeasuredLoads::seen(pid_t pid, core::DomainIndex domain, std::uint64_t bytes) {
  if (domain >= std::min(parts_.table().domains.size(), core::kMaxDomains)) return;
  const auto at =
      std::ranges::find_if(running_, [pid](const auto& one) { return one.second.pid == pid; });
  if (at == running_.end() || bytes <= at->second.most[domain]) return;
  Running& running = at->second;
  running.most[domain] = bytes;
  // Of a load that does not get ready it says only how far it came.
  if (!running.ready) return;
  store::MeasuredRecord& record = record_of(running);
  const core::MeasuredLoad before = record.measured;
  core::add_process(record.measured, parts_.table().domains[domain].id, bytes);
  if (record.measured == before) return;  // another load of it had more
  if (bytes - running.written[domain] >= kWriteStep) {
    running.written = running.most;
    keep(record);
  } else {
    running.unwritten = true;
  }
  const residency::MeasuredCharge charge = charge_of(running);
  if (running.charge == charge) return;
  running.charge = charge;
  if (parts_.on_charge) parts_.on_charge(at->first, charge);
}

void MeasuredLoads::failed(const Uuid& instance, core::FailureRecord& record) {
  const auto at = running_.find(instance);
  if (at == running_.end() || !lacked_memory(record)) return;
  const Running& running = at->second;
  const core::DomainTable& table = parts_.table();
  for (std::size_t i = 0; i < std::min(table.domains.size(), core::kMaxDomains); ++i) {
    const std::uint64_t most = running.most[static_cast<core::DomainIndex>(i)];
    if (most > 0) core::row_of(record.memory, table.domains[i].id).high_water = most;
  }
  if (const auto refused = refusal_in(record); refused && !running.is_command) {
    const core::DomainIndex domain = domain_of(refused->buffer);
    if (domain < table.domains.size()) {
      if (record.failing_domain.empty()) record.failing_domain = table.domains[domain].id;
      core::row_of(record.memory, table.domains[domain].id).failing_allocation = refused->bytes;
    }
  }
  store::MeasuredRecord& measured = record_of(running);
  const core::MeasuredLoad before = measured.measured;
  for (const core::FailureMemory& memory : record.memory) {
    // Only the domain that failed needed more than it got.
    if (!record.failing_domain.empty() && memory.domain != record.failing_domain) continue;
    core::add_failure(measured.measured, memory);
  }
  if (measured.measured != before) {
    keep(measured);
  } else if (before == core::MeasuredLoad()) {
    forget(running.key);
  }
}

void MeasuredLoads::gone(const Uuid& instance) {
  const auto at = running_.find(instance);
  if (at == running_.end()) return;
  if (at->second.unwritten) keep(record_of(at->second));
  running_.erase(at);
}

std::vector<core::LoadRatio> MeasuredLoads::ratios() {
  std::vector<core::LoadRatio> all;
  const auto last = last_;  // a record that is not believed goes
  for (const auto& [model, key] : last) {
    const store::MeasuredRecord* const record = trusted(key);
    if (record == nullptr) continue;
    for (const store::MeasuredRecord::Predicted& predicted : record->predicted) {
      const core::MeasuredDomain* const actual = record->measured.find(predicted.domain);
      if (actual == nullptr) continue;
      const auto ratio = core::predicted_to_actual(predicted.charge, *actual, predicted.overhead,
                                                   predicted.domain == "host");
      if (ratio) all.push_back({model, predicted.domain, *ratio});
    }
  }
  return all;
}

}  // namespace berth
