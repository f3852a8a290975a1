#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/fd.h"
#include "common/uuid.h"
#include "supervisor/gateway/http/http_server.h"

namespace berth::gateway {

// A client that sends bytes as they are. Every wait has a deadline, so that a broken server fails
// the test instead of hanging it.
class RawClient {
 public:
  // `receive_buffer`: bytes that the kernel may hold for this client; 0: as the system has it.
  // `from`: its own address; empty: any.
  explicit RawClient(const std::string& address, int receive_buffer = 0, const char* from = "");

  // Returns whether all of it was taken.
  bool send(std::string_view bytes);
  // Reads until `mark` has come; returns all since the last call, up to its end, or what came
  // until the server closed.
  std::string read_until(std::string_view mark);
  // Reads one answer with a Content-Length, or without a body.
  std::string read_answer();
  // All that comes until the server closes.
  std::string read_all();
  void end_sending();
  void close() { fd_.reset(); }
  // Ends both directions; another thread may be sending.
  void hang_up();
  [[nodiscard]] bool was_reset() const { return reset_; }
  // Takes what is there, or waits for it; how many bytes, 0 where the server closed.
  std::size_t read_some();
  // send() and read_all().
  std::string exchange(std::string_view request);

 private:
  bool more();

  UniqueFd fd_;
  std::string received_;
  bool reset_ = false;
};

// Keys: "Bearer admin" and "Bearer client"; loopback without a key is a client.
class FakeAuthenticator : public Authenticator {
 public:
  [[nodiscard]] Result<core::Caller> authenticate(const Peer& peer,
                                                  const Presented& presented) const override;
  // What the last call was about.
  mutable std::mutex mutex;
  mutable bool loopback_host = false;
  mutable bool foreign_origin = false;
  mutable bool forwarded = false;
};

// A handler that does nothing by itself: the test answers through it.
class TestHandler : public Handler {
 public:
  void on_room() override;
  void on_gone() override;
  bool wait_for_room(int times);
  bool wait_for_gone(std::chrono::milliseconds deadline = std::chrono::seconds(60));

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int rooms_ = 0;
  bool gone_ = false;
};

// A request that came through to a route, with its reply.
struct Arrived {
  HttpRequest request;
  std::shared_ptr<Reply> reply;
  std::shared_ptr<TestHandler> handler;
  std::thread::id thread;
};

// A server with routes for tests:
//   GET  /open          open, answers "open"
//   GET  /free          the same to those who are known, free of limits
//   GET  /items/{}      answers the argument
//   POST /echo          answers the body
//   GET, POST /wait     the test answers: see next()
//   GET  /brief         the same; its answer comes in a moment
//   POST /admin         for admins
//   GET  /livez, /readyz
class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override { serve({}); }
  void TearDown() override { server_.reset(); }
  // Starts (again), with these options in place of the usual ones where they are set.
  void serve(HttpOptions options);
  // The same with other bounds.
  void limit(const std::function<void(HttpLimits&)>& set);
  std::vector<Route> routes();

  // The next request at /wait.
  Arrived next();
  RawClient client() { return RawClient(server_->address()); }
  // One request on a connection of its own.
  std::string ask(const std::string& head, const std::string& body = "");
  std::string get(const std::string& target, const std::string& host = "localhost");
  // What was refused since the last call: "REASON TENANT", where the tenant was known.
  std::vector<std::string> refused();

  FakeAuthenticator authenticator_;
  SystemIdSource ids_;
  std::atomic<bool> ready_{true};
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Arrived> waiting_;
  std::vector<std::string> refused_;
  std::unique_ptr<HttpServer> server_;
};

// "403" of an answer.
std::string status_of(const std::string& answer);
bool has(const std::string& answer, std::string_view part);

}  // namespace berth::gateway
