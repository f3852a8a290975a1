#pragma once

#include <cstdint>
#include <string_view>

#include "supervisor/core/memory/domain.h"

namespace berth::core {

// Where a number comes from (M4).
enum class Basis : std::uint8_t {
  kEstimated,  // computed from the model's header
  kDeclared,   // by the operator, in the configuration
  kMeasured,   // of an earlier load, or a calibration, of the same provenance
};
// "measured"
std::string_view basis_name(Basis basis);

// One term of a charge.
struct ChargeTerm {
  DomainBytes bytes;
  Basis basis = Basis::kEstimated;

  bool operator==(const ChargeTerm&) const = default;
};

// What an instance takes in every domain (M4). A value.
struct Charge {
  ChargeTerm weights;
  ChargeTerm kv;        // the pool of cells, and the state of recurrent layers
  ChargeTerm working;   // compute buffers, outputs
  ChargeTerm overhead;  // of the process: program, runtime, device context
  // By how much the sum may be wrong, up or down.
  DomainBytes error;

  [[nodiscard]] DomainBytes total() const {
    return weights.bytes + kv.bytes + working.bytes + overhead.bytes;
  }
  bool operator==(const Charge&) const = default;
};

}  // namespace berth::core
