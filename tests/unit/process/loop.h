#pragma once

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/process/launcher.h"
#include "supervisor/process/process_launcher.h"

namespace berth::testing {

// Far beyond what a loaded machine needs; only a failing test waits so long.
constexpr std::chrono::seconds kGenerous{60};

// Runs the loop until `done` says so. False after the generous deadline.
inline bool run_until(boost::asio::io_context& io, const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + kGenerous;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    io.restart();
    io.run_one_for(std::chrono::milliseconds(100));
  }
  return true;
}

// Waits for what nobody tells of.
inline bool poll_until(const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + kGenerous;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    ::usleep(1000);  // polls
  }
  return true;
}

struct Recorder : process::ChildObserver {
  void on_notify(std::string_view line) override { lines.emplace_back(line); }
  void on_exit(core::ExitStatus status) override {
    exit = status;
    ++exits;
    if (after_exit) after_exit();
  }
  std::vector<std::string> lines;
  std::optional<core::ExitStatus> exit;
  int exits = 0;
  std::function<void()> after_exit;
};

inline process::LaunchSpec shell(const std::string& script) {
  process::LaunchSpec spec;
  spec.program = "/bin/sh";
  spec.argv = {"sh", "-c", script};
  spec.environment = {"PATH=/usr/bin:/bin"};
  return spec;
}

}  // namespace berth::testing
