#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "supervisor/gateway/http/admission.h"
#include "supervisor/gateway/http/body_budget.h"
#include "supervisor/gateway/http/exchange.h"
#include "supervisor/gateway/http/http_limits.h"
#include "supervisor/gateway/http/mailbox.h"
#include "supervisor/gateway/http/reply_queue.h"
#include "supervisor/gateway/http/transport.h"

namespace berth::gateway {

class Connection;

// What the connections of one server share. The server's thread only.
struct ConnectionContext {
  boost::asio::io_context& io;
  HttpLimits limits;
  const Admission& admission;
  std::shared_ptr<Mailbox> mailbox;
  BodyBudget& budget;
  // Null: everything runs on the server's thread.
  std::function<void(std::function<void()>)> run_blocking;
  std::function<void(Connection&)> on_closed;
  std::function<void(const HttpRefusal&)> on_refused;  // HttpOptions::on_refused; never empty
  // Too much waits for clients who do not take it.
  std::function<void(Connection& latest)> on_answers_full;
  std::uint64_t answers = 0;  // bytes of large answers that are being written
  std::function<void(int)>
      on_running;         // +1 where a request's head has come, -1 where it was answered
  bool draining = false;  // requests are refused, but for open routes
  bool closing = false;   // nothing is waited for any more
};

// One client's connection: reads requests one after the other, checks them, lets their routes'
// handlers work and sends what these answer. Owns the transport and all of its memory; lives until
// the connection ends, kept by its coroutine and by what is pending. The server's thread only.
//
// A read is pending also while a handler works, so that a client who hangs up is noticed at once
// (T31, T35); what he sends meanwhile waits, at most HttpLimits::kHeaderBytes of it. A client that
// closes only his sending half counts as gone, but where his answer is there in a moment.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(ConnectionContext& context, std::unique_ptr<Transport> transport, Peer peer);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() = default;

  void start();
  // The server drains: ends the connection where no request is being received or worked on.
  void drain();
  [[nodiscard]] const Peer& peer() const { return peer_; }
  // Since when it waits for a request, or for the handshake before it; nothing while it does not.
  [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> waits_since() const {
    const bool waits = (input_wanted_ || shaking_) && !exchange_.reply && !gone_;
    return waits ? std::optional(waits_since_) : std::nullopt;
  }
  // Since when a large answer is being written; nothing while none is.
  [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> writes_large_since() const {
    return large_ > 0 ? std::optional(write_began_) : std::nullopt;
  }
  // Ends it now; a handler is told that its client is gone.
  void abort() { gone(); }

 private:
  using Time = std::chrono::steady_clock::time_point;
  template <typename T>
  using Awaitable = boost::asio::awaitable<T>;

  // The request that is being answered.
  struct Exchange {
    std::shared_ptr<ReplyQueue> reply;  // null: none is
    std::shared_ptr<Handler> handler;
    std::string request_id;
    std::vector<HttpHeader> headers;
    core::Caller caller;
    bool known = false;      // who that is
    core::KeyPermit permit;  // until it is over
    bool head_only = false;
    bool old_version = false;
    bool keep_alive = false;
    bool chunked = false;
    bool streams = false;   // its head has gone out, its body follows
    bool final = false;     // all of the answer is written or in out_
    bool done = false;      // and has left
    bool broken = false;    // the connection ends without the answer's end
    bool brief = false;     // Route::brief
    bool starting = false;  // the route starts on the pool
    bool counted = false;   // by on_running
    bool room_due = false;  // and has to be told of room then
  };

  // --- The session (connection.cc).
  Awaitable<void> run(std::shared_ptr<Connection> self);
  Awaitable<bool> shake_hands();
  Awaitable<bool> serve_one();
  // Returns whether there is something to answer.
  Awaitable<bool> receive();
  Awaitable<Result<std::size_t>> receive_head();
  Awaitable<bool> receive_behind(std::unique_ptr<RequestParser> parser, RequestHead& head);
  Awaitable<Status> receive_body(RequestParser& parser, const RequestHead& head);
  Awaitable<Status> read_body(RequestParser& parser, bool keep);
  Awaitable<Status> charged(std::uint64_t bytes);
  Awaitable<void> linger();
  Awaitable<void> more(Time deadline);
  Awaitable<void> wait(Time deadline);
  void wake() { timer_.cancel(); }
  void start_read();
  void on_read(const Transport::error_code& failed, std::string_view bytes);

  // --- The answer (connection_answer.cc).
  void open_exchange(const RequestHead& head, Verdict& verdict);
  void end_exchange();
  void refuse(const Error& why);
  void start_route(const Route& route, HttpRequest request);
  void started(std::shared_ptr<Handler> handler);
  Awaitable<bool> answered();
  void pump();
  void put_head(ReplyQueue::News& news, std::string& out);
  void put_body(const ReplyQueue::News& news, std::string& out) const;
  void write(std::string bytes);
  void write_rest();
  void count_large(std::size_t bytes);
  [[nodiscard]] bool reads_too_slowly() const;
  void on_written(const Transport::error_code& failed, std::size_t bytes);
  void complete();
  void gone();

  ConnectionContext& context_;
  const std::unique_ptr<Transport> transport_;
  const Peer peer_;
  boost::asio::steady_timer timer_;  // both the deadline and the bell of the session

  std::string inbox_;  // received and not yet understood
  bool first_ = true;  // no request has come yet
  bool shaking_ = false;
  bool reading_ = false;
  bool input_wanted_ = false;
  bool input_ended_ = false;
  bool lingering_ = false;
  Time waits_since_{};  // for the present request

  std::string out_;  // being written
  std::size_t written_ = 0;
  std::size_t in_flight_ = 0;  // bytes of a stream's body in out_
  bool writing_ = false;
  bool answered_ = false;  // something was written
  bool gone_ = false;      // the transport is closed
  Time write_began_{};
  Time progress_{};        // when the client took a byte
  std::size_t large_ = 0;  // bytes of out_, where these are counted

  Exchange exchange_;
  std::optional<BodyCharge> charge_;
  std::unique_ptr<RequestParser> skipped_;  // of a refused request, whose body is read over
};

}  // namespace berth::gateway
