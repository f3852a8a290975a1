#include <array>
#include <cstddef>
#include <string_view>
#include <variant>

#include "supervisor/core/memory/charge.h"
#include "supervisor/core/memory/decision.h"
#include "supervisor/core/memory/snapshot.h"

// What the plan's enumerators are called where people and programs read of them.

namespace berth::core {
namespace {

template <typename T, std::size_t kCount>
std::string_view name_of(const std::array<std::string_view, kCount>& names, T value) {
  return names.at(static_cast<std::size_t>(value));
}

constexpr std::array<std::string_view, 3> kCallerNames = {"request", "operator", "idle_work"};
static_assert(kCallerNames.size() == static_cast<std::size_t>(CallerClass::kIdle) + 1);

constexpr std::array<std::string_view, 3> kBasisNames = {"estimated", "declared", "measured"};
static_assert(kBasisNames.size() == static_cast<std::size_t>(Basis::kMeasured) + 1);

constexpr std::array<std::string_view, 6> kEntryStateNames = {"starting", "loading", "ready",
                                                              "closing",  "leaving", "stuck"};
static_assert(kEntryStateNames.size() == static_cast<std::size_t>(EntryState::kStuck) + 1);

constexpr std::array<std::string_view, 3> kVictimKindNames = {"ready", "abandoned_load",
                                                              "idle_work"};
static_assert(kVictimKindNames.size() == static_cast<std::size_t>(VictimKind::kIdleWork) + 1);

constexpr std::array<std::string_view, 7> kParkNames = {
    "leaving", "closing", "grace", "clients", "older_waiter", "foreign_use", "idle_room"};
static_assert(kParkNames.size() == static_cast<std::size_t>(ParkFor::kIdleRoom) + 1);

constexpr std::array<std::string_view, 5> kRefusalNames = {"device_missing", "never_fits", "pinned",
                                                           "stuck", "foreign_use"};
static_assert(kRefusalNames.size() == static_cast<std::size_t>(RefuseWhy::kForeign) + 1);

constexpr std::array<std::string_view, 6> kDecisionNames = {"fits",     "shrink_bank", "evict",
                                                            "pre_empt", "park",        "refuse"};
static_assert(kDecisionNames.size() == std::variant_size_v<Decision>);

}  // namespace

std::string_view caller_name(CallerClass caller) {
  return name_of(kCallerNames, caller);
}
std::string_view basis_name(Basis basis) {
  return name_of(kBasisNames, basis);
}
std::string_view entry_state_name(EntryState state) {
  return name_of(kEntryStateNames, state);
}
std::string_view victim_kind_name(VictimKind kind) {
  return name_of(kVictimKindNames, kind);
}
std::string_view park_name(ParkFor what) {
  return name_of(kParkNames, what);
}
std::string_view refusal_name(RefuseWhy why) {
  return name_of(kRefusalNames, why);
}
std::string_view decision_name(const Decision& decision) {
  return name_of(kDecisionNames, decision.index());
}

}  // namespace berth::core
