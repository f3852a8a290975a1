#pragma once

#include <string>

namespace berth::residency {

// What a load depends on.
struct LoadBasis {
  std::string provenance;  // core::provenance_hash(); empty: not known
  bool proven = false;     // the model's last load that became ready depended on the same
};

}  // namespace berth::residency
