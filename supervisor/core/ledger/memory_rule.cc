#include "supervisor/core/ledger/memory_rule.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "common/units.h"

namespace berth::core {
namespace {

constexpr std::uint64_t kLeastMargin = 256ULL << 20U;
constexpr std::uint64_t kMarginPart = 20;  // 5 %
constexpr Duration kShortagePasses = std::chrono::seconds(1);
constexpr Duration kLongestShortage = std::chrono::seconds(60);

std::optional<std::string> domain_lifts(const FailureMemory& then, const DomainNow& now) {
  if (!then.free_at_failure) return std::nullopt;
  const std::uint64_t margin = lift_margin(*then.free_at_failure);
  if (now.free && *now.free > *then.free_at_failure &&
      *now.free - *then.free_at_failure >= margin) {
    return now.domain + " has " + format_bytes(*now.free) + " free, " +
           format_bytes(*then.free_at_failure) + " then";
  }
  if (now.charge && then.predicted_charge && *now.charge < *then.predicted_charge &&
      *then.predicted_charge - *now.charge >= margin) {
    return "it needs " + format_bytes(*now.charge) + " of " + now.domain + ", " +
           format_bytes(*then.predicted_charge) + " then";
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t lift_margin(std::uint64_t free_at_failure) {
  return std::max(kLeastMargin, free_at_failure / kMarginPart);
}

Duration shortage_passes(std::uint32_t times) {
  Duration passes = kShortagePasses;
  for (; times > 1 && passes < kLongestShortage; --times) passes *= 2;
  return std::min(passes, kLongestShortage);
}

std::optional<std::string> shortage_lifts(const FailureRecord& record, std::uint32_t times,
                                          WallTime now) {
  if (record.failing_domain != kLaunchDomain) return std::nullopt;
  if (now - record.ended < shortage_passes(times) && now >= record.ended) return std::nullopt;
  return "what was missing to start a process may be there again";
}

std::optional<std::string> memory_lifts(const FailureRecord& record,
                                        std::span<const DomainNow> domains) {
  if (record.failure_class != FailureClass::kResource &&
      record.failure_class != FailureClass::kOom) {
    return std::nullopt;
  }
  for (const FailureMemory& then : record.memory) {
    if (!record.failing_domain.empty() && then.domain != record.failing_domain) continue;
    const auto now = std::ranges::find(domains, then.domain, &DomainNow::domain);
    if (now == domains.end()) continue;
    if (auto lifts = domain_lifts(then, *now)) return lifts;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> charge_lower_bound(const FailureMemory& memory) {
  if (!memory.high_water && !memory.failing_allocation) return std::nullopt;
  const std::uint64_t held = memory.high_water.value_or(0);
  const std::uint64_t refused = memory.failing_allocation.value_or(0);
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return held > kMost - refused ? kMost : held + refused;
}

}  // namespace berth::core
