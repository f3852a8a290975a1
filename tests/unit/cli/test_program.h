#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/fd.h"
#include "supervisor/cli/app.h"
#include "supervisor/cli/environment.h"
#include "supervisor/cli/interrupts.h"

namespace berth::cli::test {

class StringOutput : public Output {
 public:
  explicit StringOutput(bool is_terminal) : terminal_(is_terminal) {}
  void write(std::string_view text) override;
  [[nodiscard]] std::optional<std::string> failed() const override { return failure; }
  [[nodiscard]] bool terminal() const override { return terminal_; }

  std::string text;
  std::optional<std::string> failure;
  // Called after every write.
  std::function<void()> on_write;

 private:
  bool terminal_;
};

// Signals that come when a test says so.
class FakeInterrupts : public Interrupts {
 public:
  void take_over(Again again) override { taken = again; }
  Caught during(const std::function<void(const std::stop_token&)>& work) override;
  [[nodiscard]] int fd() const override { return -1; }
  std::optional<int> next() override { return std::nullopt; }

  // Stops the work that is being done, from any thread.
  void interrupt(Caught kind = Caught::kInterrupt);

  std::optional<Again> taken;

 private:
  std::stop_source source_;
  std::atomic<Caught> caught_{Caught::kNone};
};

// `berth` within the test's own process.
class TestProgram {
 public:
  struct Terminal {
    bool out = false;
    bool err = false;
    int columns = 80;
  };
  TestProgram() : TestProgram(Terminal{}) {}
  explicit TestProgram(Terminal terminal);

  // The standard input, to its end.
  void set_input(const std::string& text);
  // Runs a command line; `endpoint` becomes BERTH_ENDPOINT.
  ExitCode run(const std::vector<std::string>& arguments);

  StringOutput out;
  StringOutput err;
  FakeInterrupts interrupts;
  std::map<std::string, std::string> variables;
  WallTime now;
  Environment environment;

 private:
  UniqueFd input_;
};

}  // namespace berth::cli::test
