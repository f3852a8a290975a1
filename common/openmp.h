#pragma once

namespace berth {

// How long the threads of libgomp spin at a barrier before they sleep. By default they spin so long
// for each other that a busy machine makes a model a hundred times slower. These are some tens of
// microseconds: longer than the steps of a small model, so that an idle machine loses nothing, and
// short enough to leave the core to others soon. libgomp reads it before main().
inline constexpr const char* kSpinVariable = "GOMP_SPINCOUNT";
inline constexpr const char* kSpinCount = "5000";

}  // namespace berth
