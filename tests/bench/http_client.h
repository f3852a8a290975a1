#pragma once

#include <sys/epoll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "common/fd.h"
#include "common/result.h"
#include "tests/bench/answer_reader.h"

namespace berth::bench {

// "127.0.0.1:8080" for connections.
struct Address {
  std::string host;
  std::uint16_t port = 0;

  // Errors: kInvalidArgument.
  static Result<Address> parse(std::string_view text);
};

// POST with this JSON body, over a connection that stays.
std::string post_request(const Address& address, std::string_view path, std::string_view body);

// One of many connections that one thread serves. It moves nowhere: the poller knows its address.
class Connection {
 public:
  explicit Connection(AnswerReader::OnBody on_body) : answer_(std::move(on_body)) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  virtual ~Connection() = default;

  // Its answer has all come; the connection may be closed already. May send the next request.
  virtual Status on_complete() = 0;
  // It is lost, and closed. What is returned ends Poller::run().
  virtual Status on_failure(Error error) { return fail(std::move(error)); }

  [[nodiscard]] const AnswerReader& answer() const { return answer_; }
  [[nodiscard]] bool open() const { return static_cast<bool>(fd_); }

 protected:
  AnswerReader answer_;

 private:
  friend class Poller;
  UniqueFd fd_;
  std::string unsent_;
  bool waits_to_send_ = false;
};

// Serves connections. Owns the epoll descriptor, not the connections. One thread; blocks in run()
// alone.
class Poller {
 public:
  static Result<Poller> make();

  // Opens a connection (blocking: it is to this machine). Errors: the step and errno.
  Status connect(Connection& connection, const Address& address);
  // Sends without blocking; what does not fit follows within run().
  Status send(Connection& connection, std::string_view bytes);
  // Closes it now.
  void close(Connection& connection);
  // Serves until `done`, or fails: kDeadline behind `deadline`, or with what a connection failed.
  Status run(const std::function<bool()>& done, std::chrono::steady_clock::time_point deadline);

 private:
  Status serve(Connection& connection, std::uint32_t events);
  Status read(Connection& connection);
  Status flush(Connection& connection);

  UniqueFd epoll_;
};

}  // namespace berth::bench
