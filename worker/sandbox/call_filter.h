#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace berth::worker {

// A seccomp filter in the making: rules in the order in which they are added, the first that fits
// decides. A process of another architecture's system calls is killed. One thread.
class CallFilter {
 public:
  // Holds where the low half of an argument, masked, is equal to `value` (or, with `equal` false,
  // is not). The kernel itself looks at no more than that half of descriptors, numbers of
  // processes, and flags.
  struct Condition {
    unsigned int argument = 0;  // 0 to 5
    std::uint32_t mask = ~0U;
    std::uint32_t value = 0;
    bool equal = true;
  };

  // False where filters are not known for this processor: nothing is ever installed there.
  static bool supported();

  CallFilter();

  // `action`: SECCOMP_RET_… with its data.
  void decide(long number, std::uint32_t action);
  void decide(long number, std::initializer_list<Condition> conditions, std::uint32_t action);
  // What decide() was not told of, from this number on.
  void decide_from(std::uint32_t number, std::uint32_t action);

  // Puts the calling thread (with SECCOMP_FILTER_FLAG_TSYNC all threads) and all that it starts
  // under the filter, for good. Needs NO_NEW_PRIVS. Returns 0 or an errno.
  int install(std::uint32_t otherwise, unsigned int flags);

 private:
  void add(std::uint16_t code, std::uint32_t value, unsigned int yes = 0, unsigned int no = 0);
  void load(unsigned int offset);

  std::vector<sock_filter> program_;
};

}  // namespace berth::worker
