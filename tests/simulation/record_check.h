#pragma once

#include <set>
#include <string>

#include "common/event.h"
#include "common/uuid.h"
#include "supervisor/core/ledger/failure_record.h"
#include "supervisor/residency/residency.h"
#include "tests/simulation/sim_world.h"

namespace berth::sim {

// Watches what is kept of failures, knowing how each worker really ended: no record tells of an end
// that the supervisor's signals brought about, nor of a cause that nobody proved; and whatever was
// told as an event is in the store in the end, however slow that is.
class RecordCheck {
 public:
  explicit RecordCheck(const SimWorld& world) : world_(world) {}

  // Each of these says what is wrong; empty: nothing. One that is given to the store:
  [[nodiscard]] std::string on_record(const core::FailureRecord& record) const;
  void on_event(const Event& event);
  // Everything is written.
  [[nodiscard]] std::string at_rest(const residency::Residency& residency) const;

 private:
  [[nodiscard]] std::string crash_loop_problem(const std::string& model) const;

  const SimWorld& world_;
  std::set<std::string> told_;    // records of failures that events named
  std::set<std::string> lifted_;  // and of those that were lifted
};

}  // namespace berth::sim
