#pragma once

#include <cstdint>

#include "common/clock.h"
#include "common/uuid.h"

namespace berth::sim {

// Ids that count up, so that a run repeats.
class SimIds : public IdSource {
 public:
  explicit SimIds(const Clock& clock) : clock_(clock) {}
  Uuid next() override {
    ++count_;
    return Uuid::make(clock_.wall_now(), count_, count_);
  }

 private:
  const Clock& clock_;
  std::uint64_t count_ = 0;
};

}  // namespace berth::sim
