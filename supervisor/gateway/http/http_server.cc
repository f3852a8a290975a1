#include "supervisor/gateway/http/http_server.h"

#include <netinet/tcp.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <utility>

#include "supervisor/gateway/http/admission.h"
#include "supervisor/gateway/http/connection.h"
#include "supervisor/gateway/http/connection_table.h"
#include "supervisor/gateway/http/error_response.h"
#include "supervisor/gateway/http/http_endpoint.h"
#include "supervisor/gateway/http/router.h"
#include "supervisor/gateway/http/transport.h"
#include "supervisor/gateway/http/wire.h"

namespace berth::gateway {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kAcceptPause = std::chrono::milliseconds(50);
// For what was closed to end by itself.
constexpr auto kLastTurns = std::chrono::milliseconds(500);
// The kernel takes no more of a slow stream than it has sent and this.
constexpr int kUnsentBytes = 16 << 10;

// Requests that are being received or worked on: counted on the server's thread, waited for on
// others, once no new ones are taken.
class RunningCount {
 public:
  void add(int change) {
    const std::lock_guard lock(mutex_);
    count_ += change;
    if (count_ == 0) none_.notify_all();
  }
  void take_no_more() {
    const std::lock_guard lock(mutex_);
    last_ = true;
    none_.notify_all();
  }
  bool wait_for_none(std::chrono::milliseconds wait) {
    std::unique_lock lock(mutex_);
    return none_.wait_for(lock, wait, [this] { return last_ && count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  int count_ = 0;
  bool last_ = false;
};

class RealHttpServer : public HttpServer {
 public:
  RealHttpServer(HttpOptions options, std::shared_ptr<asio::ssl::context> tls)
      : tls_(std::move(tls)),
        router_(std::move(options.routes)),
        admission_({.allowed_hosts = std::move(options.allowed_hosts),
                    .cors_origins = std::move(options.cors_origins),
                    .authenticator = options.authenticator,
                    .limits = options.key_limits,
                    .ids = options.ids,
                    .max_body = options.limits.max_body,
                    .secure = tls_ != nullptr},
                   router_),
        budget_(std::max(options.limits.bodies_in_flight, 4 * options.limits.max_body),
                options.limits.small_bodies_in_flight),
        mailbox_(std::make_shared<Mailbox>(io_)),
        context_{
            .io = io_,
            .limits = options.limits,
            .admission = admission_,
            .mailbox = mailbox_,
            .budget = budget_,
            .run_blocking = std::move(options.run_blocking),
            .on_closed = [this](Connection& gone) { connections_.remove(gone); },
            .on_refused =
                options.on_refused ? std::move(options.on_refused) : [](const HttpRefusal&) {},
            .on_answers_full =
                [this](Connection& latest) { connections_.end_slowest_readers(context_, latest); },
            .on_running = [this](int change) { running_.add(change); }} {}

  ~RealHttpServer() override {
    if (thread_.joinable()) {
      asio::post(io_, [this] { close(); });
      thread_.join();
    }
    mailbox_->close();
    budget_.forget_waiters();
  }
  RealHttpServer(const RealHttpServer&) = delete;
  RealHttpServer& operator=(const RealHttpServer&) = delete;

  error_code open(const tcp::endpoint& endpoint) {
    error_code failed;
    acceptor_.open(endpoint.protocol(), failed);
    if (!failed) acceptor_.set_option(tcp::acceptor::reuse_address(true), failed);
    if (!failed) acceptor_.bind(endpoint, failed);
    if (!failed) acceptor_.listen(asio::socket_base::max_listen_connections, failed);
    if (!failed) address_ = endpoint_text(acceptor_.local_endpoint(failed));
    return failed;
  }

  void run() {
    // A named awaitable, as everywhere here: see docs/adr/0005-coroutines.md.
    asio::awaitable<void> accepting = accept();
    asio::co_spawn(io_, std::move(accepting), asio::detached);
    thread_ = std::thread([this] {
      while (!context_.closing) io_.run_one();
      io_.run_for(kLastTurns);
    });
  }

  [[nodiscard]] std::string address() const override { return address_; }

  void drain() override {
    asio::post(io_, [this] { begin_drain(); });
  }

  bool finish(std::chrono::milliseconds wait) override {
    asio::post(io_, [this] {
      error_code ignored;
      acceptor_.close(ignored);
      begin_drain();
      running_.take_no_more();
    });
    return running_.wait_for_none(wait);
  }

 private:
  asio::awaitable<void> accept() {
    while (acceptor_.is_open()) {
      error_code failed;
      auto token = asio::redirect_error(asio::use_awaitable, failed);
      tcp::socket socket = co_await acceptor_.async_accept(token);
      if (!failed) {
        take(std::move(socket));
      } else if (failed != asio::error::operation_aborted) {
        // Out of descriptors or memory: the rest is served, and some of it will end.
        asio::steady_timer pause(io_, kAcceptPause);
        co_await pause.async_wait(token);
      }
    }
  }

  void take(tcp::socket socket) {
    error_code failed;
    const tcp::endpoint from = socket.remote_endpoint(failed);
    if (failed) return;  // gone already
    Peer peer;
    const asio::ip::address address = from.address();
    peer.address = network_of(address);
    if (!connections_.make_room(peer.address, context_.limits.connections)) {
      return turn_away(socket);
    }
    socket.set_option(tcp::no_delay(true), failed);
    socket.set_option(asio::socket_base::keep_alive(true), failed);
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytes,
                 sizeof kUnsentBytes);
    peer.loopback = address.is_loopback() ||
                    (address.is_v6() && address.to_v6().is_v4_mapped() &&
                     asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback());
    std::unique_ptr<Transport> transport = tls_ ? tls_transport(std::move(socket), *tls_)
                                                : plain_transport(std::move(socket), scratch_);
    const auto connection =
        std::make_shared<Connection>(context_, std::move(transport), std::move(peer));
    connections_.add(connection);
    connection->start();
  }

  // Says why, as far as the socket takes it at once.
  void turn_away(tcp::socket& socket) {
    ErrorExtras extras;
    extras.retry_after_seconds = 1;
    const Error why(Reason::kQueueFull, "Too many connections are open.", std::move(extras));
    const std::string id = admission_.new_id();
    context_.on_refused({.id = id, .caller = nullptr, .why = why});
    if (tls_) return;
    const HttpResponse response = error_response(why, id, {});
    ResponseFrame frame;
    frame.keep_alive = false;
    frame.request_id = id;
    const std::string date = http_date();
    frame.date = date;
    const std::string bytes = response_head(response, frame) + response.body;
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.write_some(asio::buffer(bytes), ignored);
    // What is unread when the socket is closed would turn the answer into a reset.
    socket.read_some(asio::buffer(*scratch_), ignored);
    socket.shutdown(tcp::socket::shutdown_send, ignored);
  }

  void begin_drain() {
    context_.draining = true;
    connections_.for_each([](Connection& connection) { connection.drain(); });
  }

  void close() {
    error_code ignored;
    acceptor_.close(ignored);
    context_.closing = true;
    connections_.for_each([](Connection& connection) { connection.abort(); });
    mailbox_->close();
    guard_.reset();
  }

  const std::shared_ptr<asio::ssl::context> tls_;  // null: no TLS
  const Router router_;
  const Admission admission_;
  BodyBudget budget_;
  RunningCount running_;
  ConnectionTable connections_;
  const std::shared_ptr<std::string> scratch_ =
      std::make_shared<std::string>(HttpLimits::kHeaderBytes, '\0');
  const std::shared_ptr<Mailbox> mailbox_;
  ConnectionContext context_;
  // Everything above outlives what waits in it.
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard_{io_.get_executor()};
  tcp::acceptor acceptor_{io_};
  std::string address_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::listen(HttpOptions options) {
  const Result<tcp::endpoint> endpoint = parse_endpoint(options.address);
  if (!endpoint) return fail(endpoint.error());
  std::shared_ptr<asio::ssl::context> tls;
  if (!options.tls_cert.empty()) {
    auto made = tls_context(options.tls_cert, options.tls_key);
    if (!made) return fail(made.error());
    tls = *std::move(made);
  }
  const std::string address = options.address;
  auto server = std::make_unique<RealHttpServer>(std::move(options), std::move(tls));
  if (const error_code failed = server->open(*endpoint); failed) {
    return fail(listen_error(address, failed));
  }
  server->run();
  return server;
}

}  // namespace berth::gateway
