#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "worker/sandbox/places.h"

namespace berth::worker {

// The parts of the sandbox that depend on the kernel (L26).
enum class SandboxPart : std::uint8_t {
  kFiles,          // Landlock: no file but those that the worker works with
  kTruncation,     // Landlock: ditto for emptying one
  kNetwork,        // Landlock: no TCP
  kDeviceControl,  // Landlock: no ioctl on other devices
  kSignals,        // Landlock: no signals and no abstract sockets out of the sandbox
  kSystemCalls,    // seccomp
};
inline constexpr std::size_t kSandboxParts = 6;

// What holds, or on this kernel would hold.
struct SandboxReport {
  int landlock_version = 0;  // 0: there is none
  std::array<bool, kSandboxParts> parts{};

  [[nodiscard]] bool has(SandboxPart part) const {
    return parts.at(static_cast<std::size_t>(part));
  }
  [[nodiscard]] bool complete() const;
  // One line of JSON: {"landlock":6,"parts":{"files":true,…},"complete":true}.
  [[nodiscard]] std::string json() const;
  // What is missing and which kernel has it, in one line; empty: nothing.
  [[nodiscard]] std::string missing() const;
};

// What this kernel has. Changes nothing.
SandboxReport probe_sandbox();

// Shuts this process and all that it will start in, for good: no new privileges, no file but those
// of `places` and what libraries and drivers need, no system call that a worker has no use for,
// nothing that reaches the process `supervisor`. What the kernel does not have is left out, and the
// report says so. Main thread, before any other: Landlock holds for the calling thread and those
// that it starts. Half a millisecond. Opens /proc/self for good.
SandboxReport enter_sandbox(const SandboxPlaces& places, pid_t supervisor);

}  // namespace berth::worker
