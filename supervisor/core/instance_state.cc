#include "supervisor/core/instance_state.h"

#include <array>
#include <cstddef>
#include <string_view>

namespace berth::core {
namespace {

constexpr std::array kStates = {
    InstanceStateInfo{"absent", false, false, "There is no instance."},
    InstanceStateInfo{"starting", true, false, "Its process is being started."},
    InstanceStateInfo{"loading", true, false, "It loads the model."},
    InstanceStateInfo{"ready", true, true, "It can serve."},
    InstanceStateInfo{"busy", true, true, "It serves."},
    InstanceStateInfo{"closing", true, true, "It finishes its requests and takes no new ones."},
    InstanceStateInfo{"draining", true, false, "Its requests were cancelled; it will be stopped."},
    InstanceStateInfo{"stopping", true, false, "It was told to end."},
    InstanceStateInfo{"stuck", true, false,
                      "It was killed and does not go; its memory stays charged."},
    InstanceStateInfo{"failed", false, false, "It ended without having been ready."},
    InstanceStateInfo{"gone", false, false, "It ended."},
};
static_assert(kStates.size() == static_cast<std::size_t>(InstanceState::kGone) + 1);

constexpr std::array<std::string_view, 7> kOutcomes = {"loading",     "ready", "failed", "failed",
                                                       "interrupted", "died",  "stopped"};
static_assert(kOutcomes.size() == static_cast<std::size_t>(InstanceResult::kStopped) + 1);

constexpr std::array<std::string_view, 12> kCauses = {
    "none",         "unload",       "forced_unload", "idle",   "shutdown", "load_failed",
    "load_timeout", "disconnected", "stalled",       "wedged", "evicted",  "job_ended"};
static_assert(kCauses.size() == static_cast<std::size_t>(StopCause::kJobEnded) + 1);

}  // namespace

const InstanceStateInfo& info(InstanceState state) {
  return kStates.at(static_cast<std::size_t>(state));
}

std::string_view outcome_name(InstanceResult result) {
  return kOutcomes.at(static_cast<std::size_t>(result));
}

std::string_view stop_cause_name(StopCause cause) {
  return kCauses.at(static_cast<std::size_t>(cause));
}

}  // namespace berth::core
