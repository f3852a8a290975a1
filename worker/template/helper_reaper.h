#pragma once

#include <sys/types.h>
#include <sys/wait.h>

#include <chrono>
#include <memory>
#include <optional>

#include "common/result.h"

namespace berth::worker {

// Reaps one child the moment that it dies, whoever is busy with what: its user may not look at it
// for hours, and a zombie would stay meanwhile. Owns a thread, which waits for the child and ends
// with it; the object may go before, or be copied. Any thread. It must be the only one that reaps
// this child, whose number may be another process' once ended() is there.
class HelperReaper {
 public:
  // Errors: kInternal where there can be no thread.
  static Result<HelperReaper> watch(pid_t pid);

  // How the child ended; waits for that for at most `bound`. Empty: it has not.
  [[nodiscard]] std::optional<siginfo_t> ended(std::chrono::milliseconds bound) const;

 private:
  struct State;
  explicit HelperReaper(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

}  // namespace berth::worker
