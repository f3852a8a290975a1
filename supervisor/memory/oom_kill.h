#pragma once

#include <sys/types.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fd.h"

namespace berth::memory {

// Of one record of /dev/kmsg ("priority,sequence,microseconds,flags;text"): whether the kernel
// itself tells in it that it killed that process for want of memory.
bool tells_of_oom_kill(std::string_view record, pid_t pid);

// A place in the kernel's log: behind the newest record at the moment when it was taken. What is
// read from there is newer by the kernel's own sequence numbers, so that no clock is compared: the
// time of a record is of a clock that drifts from every other one within weeks. Records that were
// overwritten before they were read are skipped; what is left is newer all the same. Owns a
// descriptor. One thread at a time.
class KernelLogPlace {
 public:
  // Null where nothing can be proven by the kernel's log: it cannot be read, which takes CAP_SYSLOG
  // or kernel.dmesg_restrict = 0; or process numbers are not the same to it and to us, as in a
  // container with numbers of its own. Does not block.
  static std::shared_ptr<const KernelLogPlace> newest();
  // `log` gives one record with each read, and does not block.
  explicit KernelLogPlace(UniqueFd log) : log_(std::move(log)) {}

  // Whether it was told since then that one of these processes was killed so. Once. Blocks: reads
  // all that is new, at most a few milliseconds, and waits 20 ms for a line that is only being
  // written.
  [[nodiscard]] bool tells_of_kill(const std::vector<pid_t>& pids) const;

 private:
  UniqueFd log_;
};

// The places at which the log was when our processes were started (L9). Of a command's that is
// berth-shim, which ends as its program does: where the kernel kills it, it kills the program, so
// that the shim's child is noted with it. A program below that one is not known here; only the
// count of a cgroup proves of it (RealLauncher::counted_oom_kill). Core strand. Forgets the
// oldest of the processes that have ended.
class KernelLogPlaces {
 public:
  // Whether a process is still there.
  explicit KernelLogPlaces(std::function<bool(pid_t)> lives) : lives_(std::move(lives)) {}

  struct Noted {
    std::shared_ptr<const KernelLogPlace> place;  // null: none is known
    std::vector<pid_t> pids;                      // the process and its first children
  };

  // `place`, which may be null, was taken before that process was started; `children` are those
  // that it had as soon as its program ran.
  void put(pid_t pid, std::shared_ptr<const KernelLogPlace> place,
           const std::vector<pid_t>& children = {});
  [[nodiscard]] Noted take(pid_t pid);
  [[nodiscard]] std::size_t size() const { return places_.size(); }

  static constexpr std::size_t kMostEnded = 64;
  static constexpr std::size_t kMostChildren = 16;

 private:
  using Entry = std::pair<pid_t, Noted>;

  std::function<bool(pid_t)> lives_;
  std::deque<Entry> places_;  // the oldest first
};

}  // namespace berth::memory
