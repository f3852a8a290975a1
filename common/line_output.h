#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/fd.h"

namespace berth {

// Writes whole lines to a descriptor that may be full, slow, blocked or closed. write_line() is for
// one thread, which may wait in it; give_up_at() is for any thread and ends the waiting.
class LineOutput {
 public:
  explicit LineOutput(int fd);  // not owned

  // Writes the line and a line feed; waits while the descriptor takes nothing. False where the line
  // was lost, wholly or in part: the other end is closed, the disk is full, or give_up_at() passed.
  bool write_line(std::string_view line);

  // From then on, on CLOCK_MONOTONIC, nothing waits any more.
  void give_up_at(SteadyTime deadline);

 private:
  enum class Wait : std::uint8_t { kReady, kGaveUp };
  Wait wait_writable();

  int fd_;
  UniqueFd wake_;  // eventfd
  std::atomic<std::int64_t> deadline_ns_;
  bool gone_ = false;  // nobody will ever read again
  bool cut_ = false;   // the last line was written in part
  std::string pending_;
};

}  // namespace berth
