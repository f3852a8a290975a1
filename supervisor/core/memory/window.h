#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "common/result.h"

namespace berth::core {

// What a served window is made from (M6). Tokens.
struct WindowTerms {
  std::optional<std::uint32_t> configured{};  // `context = N`; absent: auto
  std::uint32_t declared = 0;                 // by the model; 0: it does not say
  std::optional<std::uint32_t> probed{};      // the probe's figure (I15)
  std::uint32_t auto_max = 32'768;
  double auto_share = 0.5;  // of the budget, in (0, 1]
  // Another model is resident, pinned or waiting: auto_share holds.
  bool company = false;

  bool operator==(const WindowTerms&) const = default;
};

// The term that decided.
enum class WindowBound : std::uint8_t {
  kConfigured,
  kDeclared,
  kProbe,
  kAutoMax,
  kBudget,  // the whole one
  kShare,   // auto_share of it
  kFloor,   // 4096, or the declared window: what binds otherwise would be less
};
// "auto_share"
std::string_view window_bound_name(WindowBound bound);

struct ServedWindow {
  std::uint32_t tokens = 0;
  WindowBound bound = WindowBound::kConfigured;

  bool operator==(const ServedWindow&) const = default;
};

// Whether a window's charge fits into `share` of the budget; must hold for every window below one
// for which it holds.
using WindowFits = std::function<bool(std::uint32_t window, double share)>;

// The window that a new instance is served with. What a client asks for has no part in it. Asks
// `fits` some 20 times at most.
ServedWindow served_window(const WindowTerms& terms, const WindowFits& fits);

// The largest window of at most `window` tokens, in steps of 256, that `fits`; 0: not one step
// does. `fits` as above.
std::uint32_t largest_window(std::uint32_t window,
                             const std::function<bool(std::uint32_t window)>& fits);

// What would fit where `window` and `sequences` do not (M14): the largest smaller window, or, where
// not even the smallest one would, fewer sequences. Absent: nothing would.
std::optional<WouldFit> would_fit(
    std::uint32_t window, std::uint32_t sequences,
    const std::function<bool(std::uint32_t window, std::uint32_t sequences)>& fits);

}  // namespace berth::core
