#include "supervisor/core/memory/window.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace berth::core {
namespace {

constexpr std::uint32_t kFloorTokens = 4096;
constexpr std::uint32_t kStep = 256;

constexpr std::array<std::string_view, 7> kBoundNames = {
    "configured", "declared", "probe", "auto_context_max", "budget", "auto_share", "floor"};
static_assert(kBoundNames.size() == static_cast<std::size_t>(WindowBound::kFloor) + 1);

// The largest number in [0, most] that `holds`, which is true up to it and false beyond; 0 counts
// as true.
std::uint32_t last_that(std::uint32_t most, const std::function<bool(std::uint32_t)>& holds) {
  std::uint32_t low = 0;
  std::uint32_t high = most;
  while (low < high) {
    const std::uint32_t middle = high - (high - low) / 2;
    if (holds(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// The least of the terms that need no arithmetic.
ServedWindow least_term(const WindowTerms& terms) {
  ServedWindow least{.tokens = terms.auto_max, .bound = WindowBound::kAutoMax};
  if (terms.probed && *terms.probed < least.tokens) {
    least = {.tokens = *terms.probed, .bound = WindowBound::kProbe};
  }
  if (terms.declared != 0 && terms.declared <= least.tokens) {
    least = {.tokens = terms.declared, .bound = WindowBound::kDeclared};
  }
  return least;
}

}  // namespace

std::string_view window_bound_name(WindowBound bound) {
  return kBoundNames.at(static_cast<std::size_t>(bound));
}

std::uint32_t largest_window(std::uint32_t window,
                             const std::function<bool(std::uint32_t window)>& fits) {
  if (fits(window)) return window;
  if (window == 0) return 0;
  return kStep *
         last_that((window - 1) / kStep, [&](std::uint32_t steps) { return fits(steps * kStep); });
}

ServedWindow served_window(const WindowTerms& terms, const WindowFits& fits) {
  if (terms.configured) {
    return {.tokens = *terms.configured, .bound = WindowBound::kConfigured};
  }
  ServedWindow window = least_term(terms);
  const std::uint32_t floor =
      terms.declared == 0 ? kFloorTokens : std::min(kFloorTokens, terms.declared);
  const double share = terms.company ? terms.auto_share : 1;
  if (window.tokens > floor && !fits(window.tokens, share)) {
    const auto shared = [&](std::uint32_t tokens) { return fits(tokens, share); };
    const std::uint32_t tokens = largest_window(window.tokens, shared);
    const bool whole = share >= 1 || !fits(std::min(tokens + kStep, window.tokens), 1);
    window = {.tokens = tokens, .bound = whole ? WindowBound::kBudget : WindowBound::kShare};
  }
  if (window.tokens < floor) return {.tokens = floor, .bound = WindowBound::kFloor};
  return window;
}

std::optional<WouldFit> would_fit(
    std::uint32_t window, std::uint32_t sequences,
    const std::function<bool(std::uint32_t window, std::uint32_t sequences)>& fits) {
  const auto largest = [&](std::uint32_t served) {
    return largest_window(window, [&](std::uint32_t tokens) { return fits(tokens, served); });
  };
  if (const std::uint32_t tokens = largest(sequences); tokens > 0) {
    return WouldFit{.context = tokens, .sequences = sequences};
  }
  if (sequences < 2) return std::nullopt;
  const std::uint32_t least = std::min(window, kStep);
  const std::uint32_t served =
      last_that(sequences - 1, [&](std::uint32_t some) { return fits(least, some); });
  if (served == 0) return std::nullopt;
  return WouldFit{.context = std::max(largest(served), least), .sequences = served};
}

}  // namespace berth::core
