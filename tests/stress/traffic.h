#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/stress/client.h"
#include "tests/stress/random_call.h"

namespace berth::stress {

// What came of the calls of one kind. A value.
struct KindCount {
  std::map<std::string, std::uint64_t> results;
  Milliseconds time{0};     // of all together
  Milliseconds slowest{0};  // of one
  std::string slowest_id;

  void add(const KindCount& other);
};
using Counts = std::map<std::string, KindCount>;

// Threads that make one random call after the other, until they are told to end. Owns them; the
// functions are for one other thread. A call that the worker did not live to answer ends its
// thread.
class Traffic {
 public:
  struct Setup {
    std::string socket;
    Target target;
    std::uint64_t seed = 0;
    std::uint64_t threads = 1;
    std::optional<Place> only;  // this call, again and again
  };
  Traffic(Setup setup, const std::vector<Canary>& canaries);
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;
  ~Traffic();

  // No new calls; returns when those that run are done.
  void end();
  // The calls that run longer than any may, each in a line.
  std::vector<std::string> overdue();

  [[nodiscard]] Counts counts();
  [[nodiscard]] std::uint64_t problems() const { return problems_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Running {
    std::shared_ptr<const Call> call;
    Clock::time_point begun;
  };

  void run(std::uint64_t thread);
  // Whether the worker answered.
  bool make(Client& client, const Place& place);
  bool make_together(Client& client, Place first, std::uint64_t count);
  void note(const Call& call, const Report& report, Milliseconds time);

  const Setup setup_;
  const std::vector<Canary>& canaries_;
  Canceller canceller_;
  Patience patience_;
  std::atomic<bool> ends_{false};
  std::atomic<std::uint64_t> problems_{0};

  std::mutex mutex_;
  std::uint64_t next_running_ = 0;
  std::map<std::uint64_t, Running> running_;
  Counts counts_;

  std::vector<std::thread> threads_;
};

}  // namespace berth::stress
