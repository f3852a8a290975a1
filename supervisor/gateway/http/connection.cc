#include "supervisor/gateway/http/connection.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "supervisor/gateway/http/head_rules.h"
#include "supervisor/gateway/http/wire.h"

namespace berth::gateway {
namespace {

namespace asio = boost::asio;

// The body of a refused request is read over when it is this small, else the connection ends.
constexpr std::uint64_t kSkippedBytes = 64U << 10;

std::chrono::steady_clock::time_point now() {
  return std::chrono::steady_clock::now();
}

// Tells the server at the coroutine's end, however that comes.
class Leaving {
 public:
  Leaving(ConnectionContext& context, Connection& connection)
      : context_(context), connection_(connection) {}
  Leaving(const Leaving&) = delete;
  Leaving& operator=(const Leaving&) = delete;
  ~Leaving() { context_.on_closed(connection_); }

 private:
  ConnectionContext& context_;
  Connection& connection_;
};

}  // namespace

Connection::Connection(ConnectionContext& context, std::unique_ptr<Transport> transport, Peer peer)
    : context_(context),
      transport_(std::move(transport)),
      peer_(std::move(peer)),
      timer_(context.io) {}

void Connection::start() {
  Awaitable<void> running = run(shared_from_this());
  asio::co_spawn(context_.io, std::move(running), asio::detached);
}

void Connection::drain() {
  if (input_wanted_ && inbox_.empty() && !exchange_.reply) wake();
}

asio::awaitable<void> Connection::run(std::shared_ptr<Connection> self) {
  const Leaving leaving(context_, *self);
  bool open = true;
  if (transport_->needs_handshake()) open = co_await shake_hands();
  while (open) open = co_await serve_one();
  if (answered_ && !gone_) co_await linger();
  gone();
}

asio::awaitable<bool> Connection::shake_hands() {
  enum class Shaken : std::uint8_t { kNotYet, kWell, kBadly };
  auto shaken = std::make_shared<Shaken>(Shaken::kNotYet);
  Transport::Done done = [self = shared_from_this(), shaken](const Transport::error_code& failed) {
    *shaken = failed ? Shaken::kBadly : Shaken::kWell;
    self->wake();
  };
  waits_since_ = now();
  shaking_ = true;
  transport_->handshake(std::move(done));
  const Time deadline = now() + context_.limits.handshake_timeout;
  while (*shaken == Shaken::kNotYet && !gone_ && now() < deadline) co_await wait(deadline);
  shaking_ = false;
  co_return *shaken == Shaken::kWell;
}

asio::awaitable<bool> Connection::serve_one() {
  const bool asked = co_await receive();
  first_ = false;
  if (!asked || gone_) {
    end_exchange();
    co_return false;
  }
  const bool again = co_await answered();
  if (!again || !skipped_) co_return again;
  // The answer did not wait for the body; the next request does.
  const std::unique_ptr<RequestParser> parser = std::move(skipped_);
  const Status skipped = co_await read_body(*parser, false);
  co_return skipped.has_value();
}

asio::awaitable<bool> Connection::receive() {
  const Result<std::size_t> end = co_await receive_head();
  if (end && *end == 0) co_return false;
  Result<RequestHead> head = RequestHead{};
  auto parser = std::make_unique<RequestParser>();
  if (end) {
    head = parser->head(std::string_view(inbox_).substr(0, *end));
    inbox_.erase(0, *end);
  } else {
    head = fail(end.error());
  }
  if (!head) {
    // Where this request ends nobody can know, so it is the last.
    Verdict verdict;
    verdict.request_id = context_.admission.new_id();
    RequestHead unknown;
    unknown.keep_alive = false;
    open_exchange(unknown, verdict);
    refuse(head.error());
    co_return true;
  }
  Awaitable<bool> behind = receive_behind(std::move(parser), *head);
  const bool asked = co_await std::move(behind);
  if (inbox_.empty()) inbox_ = {};  // gives its memory back
  co_return asked;
}

asio::awaitable<Result<std::size_t>> Connection::receive_head() {
  HeadScan scan;
  waits_since_ = now();
  bool begun = !inbox_.empty();
  bool skipped = false;  // an empty line before the request, which RFC 9112 lets pass
  Time deadline =
      now() + (first_ || begun ? context_.limits.header_timeout : context_.limits.idle_timeout);
  for (;;) {
    if (!skipped && inbox_.starts_with("\r\n")) {
      skipped = true;
      inbox_.erase(0, 2);
      scan = {};
    }
    Result<std::size_t> end = 0;
    if (inbox_ != "\r") end = scan.scan(inbox_);
    if (!end || *end > 0) co_return end;
    if (gone_ || input_ended_ || (context_.draining && inbox_.empty() && !first_)) co_return 0;
    if (!begun && !inbox_.empty()) {
      begun = true;
      if (!first_) deadline = now() + context_.limits.header_timeout;
    }
    if (now() >= deadline) {
      if (inbox_.empty()) co_return 0;
      co_return fail(Reason::kRequestTimeout, "The header did not come in time.");
    }
    co_await more(deadline);
  }
}

// The checks, the body, and the start of the route's work or the refusal.
asio::awaitable<bool> Connection::receive_behind(std::unique_ptr<RequestParser> parser,
                                                 RequestHead& head) {
  Verdict verdict = context_.admission.judge(head, peer_);
  if (verdict.route != nullptr && verdict.route->access != Access::kOpen && context_.draining) {
    verdict.refusal = Error(Reason::kShuttingDown, "The server is stopping.");
    head.keep_alive = false;
  }
  open_exchange(head, verdict);
  if (verdict.refusal || verdict.answer) {
    const bool skip =
        !head.expects_continue && !head.chunked && head.content_length <= kSkippedBytes;
    if (head.has_body() && skip) {
      skipped_ = std::move(parser);
    } else if (head.has_body()) {
      exchange_.keep_alive = false;
    }
    if (verdict.refusal) {
      refuse(*verdict.refusal);
    } else {
      exchange_.reply->send(*std::move(verdict.answer));
    }
    co_return true;
  }
  if (head.has_body()) {
    const Status read = co_await receive_body(*parser, head);
    if (!read) {
      exchange_.keep_alive = false;
      refuse(read.error());
      co_return true;
    }
  }
  if (gone_) co_return false;
  HttpRequest request{.method = std::move(head.method),
                      .path = std::move(head.path),
                      .arguments = std::move(verdict.arguments),
                      .query = std::move(head.query),
                      .body = parser->take_body(),
                      .caller = std::move(verdict.caller),
                      .id = exchange_.request_id,
                      .last_event_id = std::move(head.last_event_id)};
  start_route(*verdict.route, std::move(request));
  co_return true;
}

// The last answer is on its way; a client that still sends would otherwise lose it to a reset.
asio::awaitable<void> Connection::linger() {
  lingering_ = true;
  inbox_ = {};
  Transport::Done done = [self = shared_from_this()](const Transport::error_code&) {
    self->input_ended_ = true;
    self->wake();
  };
  transport_->finish(std::move(done));
  if (!transport_->needs_handshake()) start_read();
  const Time deadline = now() + context_.limits.linger;
  while (!input_ended_ && !gone_ && now() < deadline) co_await wait(deadline);
}

asio::awaitable<void> Connection::more(Time deadline) {
  start_read();
  input_wanted_ = true;
  co_await wait(deadline);
  input_wanted_ = false;
}

asio::awaitable<void> Connection::wait(Time deadline) {
  timer_.expires_at(deadline);
  Transport::error_code ignored;
  auto token = asio::redirect_error(asio::use_awaitable, ignored);
  co_await timer_.async_wait(token);
}

void Connection::start_read() {
  if (reading_ || input_ended_ || gone_ || inbox_.size() >= HttpLimits::kHeaderBytes) return;
  reading_ = true;
  transport_->read(
      HttpLimits::kHeaderBytes - inbox_.size(),
      [self = shared_from_this()](const Transport::error_code& failed, std::string_view bytes) {
        self->on_read(failed, bytes);
      });
}

void Connection::on_read(const Transport::error_code& failed, std::string_view bytes) {
  reading_ = false;
  if (gone_) return;
  if (failed) {
    input_ended_ = true;
    if (exchange_.reply && !input_wanted_ && !exchange_.final && !exchange_.brief) return gone();
    return wake();
  }
  if (lingering_) {
    if (!transport_->needs_handshake()) start_read();
    return;
  }
  inbox_ += bytes;
  if (input_wanted_) return wake();
  start_read();
}

}  // namespace berth::gateway
