#include "supervisor/told_problems.h"

namespace berth {

void ToldProblems::tell(const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) {
    if (told_.contains(problem)) continue;
    events_.emit_typed(events::ServerDegraded{.part = part_, .problem = problem});
  }
  told_ = {problems.begin(), problems.end()};
}

}  // namespace berth
