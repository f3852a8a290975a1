#include "supervisor/tree_memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace berth {
namespace {

constexpr std::size_t kLarge = std::size_t{64} << 20U;

// A small process below this one, and below that one which holds kLarge.
class SmallAboveLarge {
 public:
  SmallAboveLarge() {
    std::array<int, 2> ready{};
    EXPECT_EQ(::pipe(ready.data()), 0);
    small_ = ::fork();
    if (small_ == 0) {
      ::setpgid(0, 0);
      if (::fork() == 0) hold(ready[1]);
      ::close(ready[1]);
      while (true) ::pause();
    }
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
  }
  SmallAboveLarge(const SmallAboveLarge&) = delete;
  SmallAboveLarge& operator=(const SmallAboveLarge&) = delete;
  ~SmallAboveLarge() {
    ::kill(-small_, SIGKILL);
    ::waitpid(small_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return small_; }

 private:
  [[noreturn]] static void hold(int ready) {
    void* const memory =
        ::mmap(nullptr, kLarge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memset(memory, 1, kLarge);
    if (::write(ready, "x", 1) != 1) ::_exit(1);
    while (true) ::pause();
  }

  pid_t small_ = -1;
};

TEST(TreeMemory, CountsTheProgramBelowItsShim) {
  const SmallAboveLarge tree;
  EXPECT_LT(process_memory(tree.pid()), kLarge);
  EXPECT_GE(tree_memory(tree.pid()), kLarge);
  EXPECT_LT(tree_memory(tree.pid()), 4 * kLarge);
}

TEST(TreeMemory, OfNobodyIsNothing) {
  EXPECT_EQ(tree_memory(0x7fffffff), 0U);
}

}  // namespace
}  // namespace berth
