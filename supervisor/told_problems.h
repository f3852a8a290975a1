#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/event.h"

namespace berth {

// Tells of each problem that makes the state degraded when it comes, and anew when it comes again.
// Core strand; `events` outlives it.
class ToldProblems {
 public:
  // `part`: of the server, as server.degraded says it.
  ToldProblems(EventSink& events, std::string part) : events_(events), part_(std::move(part)) {}

  // Those that there are now, a sentence each.
  void tell(const std::vector<std::string>& problems);

 private:
  EventSink& events_;
  const std::string part_;
  std::set<std::string> told_;
};

}  // namespace berth
