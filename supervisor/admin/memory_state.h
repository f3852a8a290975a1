#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "berth/v1/admin.pb.h"
#include "common/result.h"
#include "supervisor/admin/server_state.h"
#include "supervisor/core/caller.h"
#include "supervisor/core/memory/charge.h"
#include "supervisor/core/memory/domain.h"
#include "supervisor/core/memory/snapshot.h"
#include "supervisor/residency/residency.h"

namespace berth::admin {

// What is charged in a domain, by what it is for. Bytes.
struct ChargedParts {
  std::uint64_t weights = 0;
  std::uint64_t kv = 0;
  std::uint64_t working = 0;
  // And what is charged but known of no part.
  std::uint64_t overhead = 0;

  [[nodiscard]] std::uint64_t sum() const { return weights + kv + working + overhead; }
};

// One domain with all that is charged there.
struct DomainUse {
  core::Domain domain;
  ChargedParts charged;
  std::uint64_t bank = 0;
  std::uint64_t available = 0;  // limit - charged - bank
};

// The domains of the snapshot, in its order; empty where nothing is counted. What the charges are
// made of stands in the instances; a process that is gone is charged as a sum.
std::vector<DomainUse> domain_use(const core::Snapshot& snapshot,
                                  const std::vector<residency::InstanceSnapshot>& instances);

// For an admin; a client sees id, total and available.
v1::DomainState to_proto(const DomainUse& use, const core::Caller& caller);

v1::DomainState to_proto(const DomainMemory& memory);

// What its charge is made of: as it was measured, else as it was predicted.
inline const core::Charge& terms_of(const residency::InstanceSnapshot& instance) {
  return instance.measured ? *instance.measured : instance.plan.terms;
}

// By domain, those with nothing left out. `terms` may be empty: only the sum is known.
google::protobuf::RepeatedPtrField<v1::DomainCharge> charge_message(const core::DomainBytes& bytes,
                                                                    const core::Charge& terms,
                                                                    const core::Domains& domains);
google::protobuf::RepeatedPtrField<v1::DomainAmount> amounts(const core::DomainBytes& bytes,
                                                             const core::Domains& domains);

// With what it is charged, for an admin.
v1::Instance charged_instance(const residency::InstanceSnapshot& instance,
                              const core::Domains& domains, const core::Caller& caller);

// The domains, and who has what of them, for an admin. Any thread; `done` on the core strand.
// Errors: kPermissionDenied.
void get_memory(ServerState& state, const core::Caller& caller,
                std::function<void(Result<v1::Memory>)> done);

}  // namespace berth::admin
