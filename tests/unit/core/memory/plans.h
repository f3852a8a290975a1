#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "supervisor/core/memory/decision.h"
#include "supervisor/core/memory/snapshot.h"

// Small snapshots for the planner's tests. Memory is in bytes, a handful of them; the clock stands
// at kNow.
namespace berth::core::testing {

using std::chrono::seconds;

inline constexpr SteadyTime kNow{std::chrono::hours(1)};

inline SteadyTime ago(Duration duration) {
  return kNow - duration;
}

// The n-th id; ordered by n.
inline Uuid numbered(unsigned number) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "00000000-0000-7000-8000-000000000000";
  for (std::size_t at = text.size(); number > 0; number /= 16) text[--at] = kDigits[number % 16];
  return Uuid::parse(text);
}

inline Domain domain_of(std::string id, std::uint64_t budget) {
  return {.id = std::move(id), .device = "", .total = 1'000'000, .budget = budget};
}

// The host and devices with these budgets.
inline Snapshot machine(std::uint64_t host, const std::vector<std::uint64_t>& devices = {}) {
  Snapshot snapshot;
  snapshot.now = kNow;
  snapshot.domains.push_back(domain_of("host", host));
  for (std::size_t i = 0; i < devices.size(); ++i) {
    snapshot.domains.push_back(domain_of("gpu" + std::to_string(i), devices[i]));
  }
  return snapshot;
}

inline DomainBytes on(DomainIndex domain, std::uint64_t bytes) {
  return DomainBytes::in(domain, bytes);
}
inline DomainBytes in_host(std::uint64_t bytes) {
  return on(kHostDomain, bytes);
}

// A ready one that has been idle for a minute and took a second to load.
inline Entry ready(unsigned id, std::string model, DomainBytes charge) {
  return {.id = numbered(id),
          .model = std::move(model),
          .state = EntryState::kReady,
          .charge = charge,
          .idle_since = ago(seconds(60)),
          .last_used = ago(seconds(60)),
          .reload = seconds(1)};
}
inline Entry in_state(unsigned id, std::string model, DomainBytes charge, EntryState state) {
  Entry entry = ready(id, std::move(model), charge);
  entry.state = state;
  return entry;
}
inline Entry busy(unsigned id, std::string model, DomainBytes charge) {
  Entry entry = ready(id, std::move(model), charge);
  entry.clients = 1;
  return entry;
}

// One device, or the host alone for kHostDomain.
inline PlacementOption option_on(DomainIndex domain, DomainBytes bytes) {
  PlacementOption option{.bytes = bytes};
  if (domain != kHostDomain) option.placement.shares = {{.device = domain, .layers = 1}};
  return option;
}

// Of a client that has just come.
inline Need need_of(std::string model, std::vector<PlacementOption> options) {
  return {.model = std::move(model),
          .since = kNow,
          .until = kNow + seconds(600),
          .options = std::move(options)};
}
inline Need need_in_host(std::string model, std::uint64_t bytes) {
  return need_of(std::move(model), {option_on(kHostDomain, in_host(bytes))});
}

// The models of the victims, in their order.
inline std::vector<std::string> victims_of(const Decision& decision) {
  std::vector<std::string> models;
  const auto* evict = std::get_if<Evict>(&decision);
  const auto* pre_empt = std::get_if<PreEmpt>(&decision);
  for (const Victim& victim : evict      ? evict->victims
                              : pre_empt ? pre_empt->victims
                                         : std::vector<Victim>()) {
    models.push_back(victim.model);
  }
  return models;
}

// The answer as `T`; a test that gets another one ends with a failure that names it.
template <typename T>
T as(const Decision& decision) {
  if (const T* it = std::get_if<T>(&decision)) return *it;
  ADD_FAILURE() << "the planner answered " << decision_name(decision);
  return {};
}

}  // namespace berth::core::testing
