// Any bytes are a client: whatever comes, in whatever pieces, is answered by whole answers of known
// status and nothing between or behind them, reaches only the routes that its key allows, and ends.
// The first byte says how large the pieces are, and when the pool works. There is no network: the
// connection reads from memory.

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/text.h"
#include "supervisor/gateway/http/connection.h"
#include "supervisor/gateway/http/router.h"
#include "tests/fuzz/http_answers.h"

namespace {

namespace asio = boost::asio;
namespace gateway = berth::gateway;

constexpr std::uint64_t kMaxBody = 4096;
constexpr std::size_t kPoolBody = 16;  // so that small inputs come there, too
// Far more than any input needs.
constexpr int kMostTurns = 1'000'000;

void require(bool truth) {
  if (!truth) std::abort();
}

// The client's side of the connection.
struct Wire {
  std::string_view in;
  std::size_t piece = 1;
  std::string out;
  bool closed = false;
  bool finished = false;  // everything was answered, and that was said
  std::size_t read_most = 0;
  gateway::Transport::Read read;
  bool eager = false;  // the pool works at once, not when there is nothing else to do
  std::deque<std::function<void()>> pool;
};

class MemoryTransport : public gateway::Transport {
 public:
  MemoryTransport(asio::io_context& io, std::shared_ptr<Wire> wire)
      : io_(io), wire_(std::move(wire)) {}

  [[nodiscard]] bool needs_handshake() const override { return false; }
  void handshake(Done /*done*/) override {}
  void read(std::size_t most, Read done) override {
    require(!wire_->read && most > 0);
    wire_->read_most = most;
    wire_->read = std::move(done);
  }
  // Takes a part, so that rests are written, too.
  void write(std::string_view bytes, Written done) override {
    require(!bytes.empty());
    const std::size_t taken = std::min(bytes.size(), 7 * wire_->piece);
    if (!wire_->closed) wire_->out += bytes.substr(0, taken);
    asio::post(io_, [done = std::move(done), taken] { done({}, taken); });
  }
  [[nodiscard]] bool client_ended() override { return wire_->closed; }
  void finish(Done /*done*/) override { wire_->finished = true; }
  void close(bool /*reset*/) override { wire_->closed = true; }

 private:
  asio::io_context& io_;
  const std::shared_ptr<Wire> wire_;
};

class OneKey : public gateway::Authenticator {
 public:
  [[nodiscard]] berth::Result<berth::core::Caller> authenticate(
      const gateway::Peer& /*peer*/, const gateway::Presented& presented) const override {
    if (presented.authorization != "Bearer k") {
      return berth::fail(berth::Reason::kUnauthenticated, "No.");
    }
    return berth::core::Caller{};
  }
};

class Counted : public berth::IdSource {
 public:
  berth::Uuid next() override { return berth::Uuid::make({}, ++count_, 0); }

 private:
  std::uint64_t count_ = 0;
};

void check(const gateway::HttpRequest& request) {
  require(request.path.starts_with('/'));
  require(request.body.size() <= kMaxBody);
  require(!request.id.empty() && request.id.size() <= 128);
  for (const std::string& argument : request.arguments) {
    require(!argument.empty() && !berth::first_invalid_utf8(argument));
  }
}

std::vector<gateway::Route> routes() {
  using gateway::Access;
  const auto echo = [](gateway::HttpRequest request, const std::shared_ptr<gateway::Reply>& reply) {
    check(request);
    gateway::HttpResponse response;
    response.body = std::move(request.body);
    reply->send(std::move(response));
    return nullptr;
  };
  const auto stream = [](const gateway::HttpRequest& request,
                         const std::shared_ptr<gateway::Reply>& reply) {
    check(request);
    reply->begin({});
    reply->write("one");
    reply->write("two");
    reply->end();
    return nullptr;
  };
  const auto never = [](const gateway::HttpRequest&, const std::shared_ptr<gateway::Reply>&) {
    require(false);
    return nullptr;
  };
  std::vector<gateway::Route> made;
  made.push_back({"GET", "/livez", Access::kOpen, echo});
  made.push_back({"POST", "/echo", Access::kClient, echo});
  made.push_back({"GET", "/stream/{...}", Access::kOpen, stream});
  made.push_back({"DELETE", "/items/{}", Access::kClient, echo});
  made.push_back({"POST", "/admin", Access::kAdmin, never});
  return made;
}

const gateway::Router& router() {
  static const gateway::Router made(routes());
  return made;
}

// Plays the client until the connection has ended.
void play(asio::io_context& io, const std::shared_ptr<Wire>& wire, const bool& ended) {
  for (int turn = 0; turn < kMostTurns; ++turn) {
    io.restart();
    io.poll();
    if (!wire->pool.empty() && (wire->eager || wire->in.empty() || !wire->read)) {
      const std::function<void()> job = std::move(wire->pool.front());
      wire->pool.pop_front();
      job();
      continue;
    }
    if (!wire->read) {
      if (ended) return;
      continue;
    }
    const auto read = std::exchange(wire->read, nullptr);
    if (wire->closed || wire->in.empty()) {
      read(asio::error::eof, {});
      continue;
    }
    const std::size_t size = std::min({wire->piece, wire->read_most, wire->in.size()});
    const std::string_view bytes = wire->in.substr(0, size);
    wire->in.remove_prefix(size);
    read({}, bytes);
  }
  require(false);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto wire = std::make_shared<Wire>();
  wire->piece = std::size_t{data[0]} * 16 + 1;
  wire->eager = data[0] % 2 == 1;
  wire->in = {reinterpret_cast<const char*>(data) + 1, size - 1};
  const bool heads = wire->in.find("HEAD ") != std::string_view::npos;
  OneKey authenticator;
  Counted ids;
  const gateway::Admission admission({.allowed_hosts = {"berth.lan"},
                                      .cors_origins = {"https://page.example"},
                                      .authenticator = &authenticator,
                                      .ids = &ids,
                                      .max_body = kMaxBody},
                                     router());
  gateway::BodyBudget budget(16 * kMaxBody, 16 * kMaxBody);
  int refused = 0;
  bool ended = false;
  int running = 0;
  asio::io_context io(1);
  gateway::ConnectionContext context{
      .io = io,
      .limits = {},
      .admission = admission,
      .mailbox = std::make_shared<gateway::Mailbox>(io),
      .budget = budget,
      .run_blocking = [&wire](std::function<void()> job) { wire->pool.push_back(std::move(job)); },
      .on_closed = [&ended](gateway::Connection&) { ended = true; },
      .on_refused =
          [&refused](const gateway::HttpRefusal& one) {
            require(!one.id.empty());
            ++refused;
          },
      .on_answers_full = {},
      .on_running = [&running](int change) { running += change; }};
  context.limits.max_body = kMaxBody;
  context.limits.pool_body = kPoolBody;
  std::make_shared<gateway::Connection>(context, std::make_unique<MemoryTransport>(io, wire),
                                        gateway::Peer{})
      ->start();
  play(io, wire, ended);
  require(running == 0);
  require(budget.untouched());  // all of it came back
  require(wire->pool.empty());
  require(berth::fuzz::HttpAnswers(wire->out, heads, !wire->finished).valid());
  return 0;
}
