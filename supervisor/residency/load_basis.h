#pragma once

#include <string>

#include "supervisor/core/ledger/provenance.h"

namespace berth::residency {

// What a load depends on.
struct LoadBasis {
  std::string provenance;  // core::provenance_hash(); empty: not known
  bool proven = false;     // the model's last load that became ready depended on the same
  core::Provenance of{};   // what was hashed
};

}  // namespace berth::residency
