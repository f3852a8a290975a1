#include "supervisor/core/memory/measured_load.h"

#include <algorithm>

#include "supervisor/core/ledger/memory_rule.h"
#include "supervisor/core/memory/saturating.h"

namespace berth::core {
namespace {

constexpr std::uint64_t kMiB = 1ULL << 20;
// Of a sum that was measured: libllama rounds what it says, and the next process is not the same.
constexpr std::uint64_t kErrorPart = 50;
constexpr std::uint64_t kLeastError = 16 * kMiB;

MeasuredDomain& row_of(MeasuredLoad& measured, std::string_view domain) {
  const auto at = std::ranges::find(measured.domains, domain, &MeasuredDomain::domain);
  if (at != measured.domains.end()) return *at;
  MeasuredDomain& row = measured.domains.emplace_back();
  row.domain = domain;
  return row;
}

std::uint64_t reported(const MeasuredDomain& row) {
  return saturating_add(saturating_add(row.weights, row.kv), row.working);
}

// What the process has beside what libllama said; absent: the process was not seen.
std::optional<std::uint64_t> measured_overhead(const MeasuredDomain& row, bool is_host) {
  if (!row.process) return std::nullopt;
  std::uint64_t own = reported(row);
  if (is_host) own -= std::min(own, row.mapped);
  return *row.process - std::min(*row.process, own);
}

std::uint64_t overhead_of(const MeasuredDomain& row, std::uint64_t predicted, bool is_host) {
  const auto seen = measured_overhead(row, is_host);
  if (!seen) return predicted;
  return is_host ? std::max(*seen, predicted) : *seen;
}

// Whether the term is measured wherever it has something.
bool all_known(const ChargeTerm& term, const std::vector<bool>& known) {
  for (std::size_t i = 0; i < kMaxDomains; ++i) {
    const bool is_known = i < known.size() && known[i];
    if (!is_known && term.bytes[static_cast<DomainIndex>(i)] > 0) return false;
  }
  return true;
}

void take_report(const MeasuredDomain& row, DomainIndex domain, Charge& charge) {
  charge.weights.bytes[domain] = row.weights;
  charge.kv.bytes[domain] = row.kv;
  charge.working.bytes[domain] = row.working;
  std::uint64_t& overhead = charge.overhead.bytes[domain];
  overhead = overhead_of(row, overhead, domain == kHostDomain);
  const std::uint64_t sum = charge.total()[domain];
  charge.error[domain] = std::max(kLeastError, sum / kErrorPart);
}

// Nothing says which term it is that has more.
void grow_to(std::uint64_t bytes, DomainIndex domain, Charge& charge) {
  const std::uint64_t sum = charge.total()[domain];
  if (sum >= bytes) return;
  std::uint64_t& overhead = charge.overhead.bytes[domain];
  overhead = saturating_add(overhead, bytes - sum);
}

}  // namespace

const MeasuredDomain* MeasuredLoad::find(std::string_view domain) const {
  const auto at = std::ranges::find(domains, domain, &MeasuredDomain::domain);
  return at == domains.end() ? nullptr : &*at;
}

std::string measurement_key(const Provenance& provenance, const Placement& placement,
                            const Domains& domains) {
  Provenance without_budget = provenance;
  without_budget.budget.reset();
  std::string key = provenance_hash(without_budget);
  for (const Placement::Share& share : placement.shares) {
    const bool named = share.device < domains.size();
    key += " " + std::to_string(share.layers) + "@" +
           (named ? domains[share.device].id : "device " + std::to_string(share.device));
  }
  return key;
}

void add_report(MeasuredLoad& measured, std::span<const MeasuredDomain> reported) {
  if (measured.loads < UINT32_MAX) ++measured.loads;
  for (MeasuredDomain& row : measured.domains) row.at_least.reset();
  for (const MeasuredDomain& said : reported) {
    MeasuredDomain& row = row_of(measured, said.domain);
    row.weights = std::max(row.weights, said.weights);
    row.mapped = std::max(row.mapped, std::min(said.mapped, row.weights));
    row.kv = std::max(row.kv, said.kv);
    row.working = std::max(row.working, said.working);
  }
}

void add_process(MeasuredLoad& measured, std::string_view domain, std::uint64_t bytes) {
  MeasuredDomain& row = row_of(measured, domain);
  row.process = std::max(row.process.value_or(0), bytes);
}

void add_failure(MeasuredLoad& measured, const FailureMemory& failure) {
  const auto bound = charge_lower_bound(failure);
  if (!bound || failure.domain.empty()) return;
  MeasuredDomain& row = row_of(measured, failure.domain);
  row.at_least = std::max(row.at_least.value_or(0), *bound);
}

Charge with_measured(Charge predicted, const MeasuredLoad& measured, const Domains& domains) {
  const std::size_t count = std::min(domains.size(), kMaxDomains);
  std::vector<bool> known(count);
  std::vector<bool> seen(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto domain = static_cast<DomainIndex>(i);
    const MeasuredDomain* const row = measured.find(domains[i].id);
    if (row == nullptr) continue;
    if (measured.loads > 0 && reported(*row) > 0) {
      take_report(*row, domain, predicted);
      known[i] = true;
      seen[i] = row->process.has_value();
    } else if (measured.loads > 0 && row->process && *row->process > predicted.total()[domain]) {
      grow_to(*row->process, domain, predicted);
      predicted.error[domain] = std::max(kLeastError, *row->process / kErrorPart);
      seen[i] = true;
    }
    if (row->at_least) grow_to(*row->at_least, domain, predicted);
  }
  if (measured.loads == 0) return predicted;
  for (ChargeTerm* const term : {&predicted.weights, &predicted.kv, &predicted.working}) {
    if (all_known(*term, known)) term->basis = Basis::kMeasured;
  }
  if (all_known(predicted.overhead, seen)) predicted.overhead.basis = Basis::kMeasured;
  return predicted;
}

std::optional<double> predicted_to_actual(std::uint64_t predicted, const MeasuredDomain& actual,
                                          std::uint64_t predicted_overhead, bool is_host) {
  const std::uint64_t said = reported(actual);
  if (said == 0) return std::nullopt;
  const std::uint64_t sum = saturating_add(said, overhead_of(actual, predicted_overhead, is_host));
  return static_cast<double>(predicted) / static_cast<double>(sum);
}

}  // namespace berth::core
