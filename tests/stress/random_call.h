#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tests/stress/call.h"

namespace berth::stress {

// Which call of a run. The same place gives the same call, for the same target, whatever happened
// before.
struct Place {
  std::uint64_t seed = 0;
  std::uint64_t thread = 0;
  std::uint64_t number = 0;
};

// THREAD.NUMBER, as in the id SEED.THREAD.NUMBER of a call; nothing where the text is no such.
std::optional<Place> place_of(std::string_view text, std::uint64_t seed);

Call random_call(const Place& place, const Target& target);

// How many calls a thread makes at once, beginning with this one: mostly one.
std::uint64_t calls_at_once(const Place& place);

}  // namespace berth::stress
