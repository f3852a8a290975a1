#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "tests/fault_worker/fault_script.h"

namespace berth::fault {

// What orders do to the side that speaks with the supervisor. Any thread.
class Side {
 public:
  Side() = default;
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  virtual ~Side() = default;

  // Begins to listen. Returns an empty text, or what went wrong.
  virtual std::string listen() = 0;
  virtual void progress(const std::string& phase, float fraction) = 0;
  virtual void ready() = 0;
  virtual void fail(const std::string& failure_class, const std::string& reason) = 0;
  // Waits until the failure was told, at most 5 s.
  virtual void settle_failure() = 0;
  virtual void close_control() = 0;
  virtual void heartbeats(bool on) = 0;
  virtual void freeze(bool on) = 0;
  virtual void set(const Order& order) = 0;
  // The name in the file system goes.
  virtual void end() = 0;
};

// One request that is being answered, on its own thread.
class Answer {
 public:
  Answer() = default;
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  virtual ~Answer() = default;

  virtual void say(std::uint64_t tokens) = 0;
  // Returns when the client has given up.
  virtual void hold() = 0;
};

// Carries out orders. Any thread; lives as long as the process.
class Actor {
 public:
  // `file`: what is read by the order to read; may be empty.
  Actor(Script script, std::string file) : script_(std::move(script)), file_(std::move(file)) {}

  // The worker's life up to ready and beyond, on one thread: start, listen, load, ready.
  void live(Side& side);
  void request(Side& side, Answer& answer) { run(Phase::kRequest, side, &answer); }
  // At SIGTERM; returns when the process is to end.
  void term(Side& side) { run(Phase::kTerm, side, nullptr); }

  [[nodiscard]] bool ignores_term() const { return ignores_term_; }
  [[nodiscard]] bool ignores_stdin() const { return ignores_stdin_; }

 private:
  void run(Phase phase, Side& side, Answer* answer);
  void perform(const Order& order, Side& side, Answer* answer);
  void tell(const Order& order, Side& side, Answer* answer);

  const Script script_;
  const std::string file_;
  std::atomic<bool> told_ready_{false};
  std::atomic<bool> told_failed_{false};
  std::atomic<bool> ignores_term_{false};
  std::atomic<bool> ignores_stdin_{false};
};

}  // namespace berth::fault
