#include "supervisor/charged_processes.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace berth {

std::vector<memory::ChargedProcess> charged_processes(
    const std::vector<residency::InstanceSnapshot>& instances, WallTime now) {
  constexpr std::array<std::string_view, 3> kMoving = {"starting", "loading", "stopping"};
  std::vector<memory::ChargedProcess> all;
  for (const residency::InstanceSnapshot& one : instances) {
    const bool moving = std::ranges::find(kMoving, one.state) != kMoving.end() &&
                        now - one.state_since < kLongestMove;
    all.push_back({.pid = one.pid, .charge = one.charge, .moving = moving});
  }
  return all;
}

}  // namespace berth
