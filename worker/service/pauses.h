#pragma once

#include <atomic>
#include <cstdint>

namespace berth::worker {

// Answers that go on only when their clients read. While all that is active waits so, nothing is
// computed although nothing is wrong (L9): that the context thread still looks at them and goes on
// is the sign of life. Any thread.
struct Pauses {
  std::atomic<std::uint32_t> streams{0};  // paused now
  std::atomic<std::uint64_t> passed{0};   // looks at one of them, so far
};

}  // namespace berth::worker
