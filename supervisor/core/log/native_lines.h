#pragma once

#include <optional>
#include <string_view>

#include "supervisor/core/failure.h"

namespace berth::core {

// What a line of a native library or program says (L15, D12 to D15).
struct NativeLine {
  FailureClass failure_class = FailureClass::kCrash;
  // An allocation that the program may try again in another way: see continues_allocation().
  bool held = false;
};

// `message` is what stands behind the logger prefix of a line that is not indented. Nothing for a
// line that is not known: never a guess.
std::optional<NativeLine> match_native_line(std::string_view message);

// Whether a line still belongs to the burst of a failed allocation (D13).
bool continues_allocation(std::string_view line);
// Whether such a line says that the program tries again.
bool retries_allocation(std::string_view line);

}  // namespace berth::core
