#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/clock.h"
#include "supervisor/process/async.h"

namespace berth {

// Looks at file systems that may hang: each on a thread of its own, at most one for each key, few
// at once. One that is late gives its turn to the next and keeps only its thread; when it comes
// back, what it found is told all the same. Core strand only; its threads may outlive it, and what
// they find then is dropped.
class PatientLooks {
 public:
  // What is done on the core strand with what a look found.
  using Finish = std::function<void()>;
  using Look = std::function<Finish()>;  // on a thread; may never return
  struct Options {
    Duration patience;              // from the start of its thread; then a look is late
    std::size_t most_at_once = 4;   // that are not late
    std::size_t most_threads = 64;  // late ones, too; beyond them looks wait
  };

  PatientLooks(Clock& clock, process::RunBlocking run_alone, Options options)
      : clock_(clock), run_alone_(std::move(run_alone)), options_(options) {}
  PatientLooks(const PatientLooks&) = delete;
  PatientLooks& operator=(const PatientLooks&) = delete;
  ~PatientLooks() = default;

  // As soon as it is its turn. False: that key has a look already, and nothing happens.
  bool begin(const std::string& key, Look look);
  // It waits, or a thread is at it.
  [[nodiscard]] bool busy(const std::string& key) const { return entries_.contains(key); }
  [[nodiscard]] bool late(const std::string& key) const;
  // None waits or runs that is not late.
  [[nodiscard]] bool idle() const { return queue_.empty() && in_time_ == 0; }

 private:
  struct Entry {
    Look look;  // empty: it runs
    bool late = false;
    Timer deadline;
  };

  void begin_some();
  void run(const std::string& key);
  void end(const std::string& key, const Finish& finish);
  void give_up(const std::string& key);

  Clock& clock_;
  const process::RunBlocking run_alone_;
  const Options options_;
  std::map<std::string, Entry> entries_;
  std::deque<std::string> queue_;  // keys that wait for their turn
  std::size_t in_time_ = 0;        // run, and are not late
  std::size_t threads_ = 0;
  const std::shared_ptr<PatientLooks*> self_ = std::make_shared<PatientLooks*>(this);
};

}  // namespace berth
