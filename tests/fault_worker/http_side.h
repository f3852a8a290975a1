#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

#include "common/fd.h"
#include "tests/fault_worker/fault_actor.h"

namespace berth::fault {

// An OpenAI-compatible server as a command worker is one, in small: GET /health says that all is
// well as soon as it listens, whatever the load does; GET /v1/models names one model; a POST waits
// until it is ready, follows the script's orders for requests, and gives a fixed answer. One thread
// a connection, which takes one request. Lives as long as the process.
class HttpSide final : public Side {
 public:
  struct Setup {
    std::uint16_t port = 0;   // of 127.0.0.1; 0: one that is free
    std::string socket = {};  // instead of a port
    std::string api_key = {};
  };
  HttpSide(Setup setup, Actor& actor) : setup_(std::move(setup)), actor_(actor) {}

  std::string listen() override;  // says "listening on PORT" on stdout
  void progress(const std::string& phase, float fraction) override;
  void ready() override;
  void fail(const std::string& failure_class, const std::string& reason) override;
  void settle_failure() override {}
  void close_control() override {}
  void heartbeats(bool on) override;
  void freeze(bool /*on*/) override {}
  void set(const Order& order) override;
  void end() override;

 private:
  class Request;

  void accept_connections();
  void serve(int connection);
  [[nodiscard]] std::string answer(const std::string& head, int connection);
  void wait_ready();

  const Setup setup_;
  Actor& actor_;
  UniqueFd socket_;
  std::atomic<bool> healthy_{true};

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ready_ = false;
  std::string text_ = "The fault worker answers every question with the same nine words.";
};

}  // namespace berth::fault
