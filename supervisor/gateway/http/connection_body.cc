#include <utility>

#include "supervisor/gateway/http/connection.h"
#include "supervisor/gateway/http/wire.h"

namespace berth::gateway {
namespace {

namespace asio = boost::asio;

std::chrono::steady_clock::time_point now() {
  return std::chrono::steady_clock::now();
}

}  // namespace

asio::awaitable<Status> Connection::receive_body(RequestParser& parser, const RequestHead& head) {
  charge_.emplace(context_.budget, peer_.address);
  if (head.expects_continue && inbox_.empty()) write(std::string(kContinue));
  Status read = co_await read_body(parser, true);
  if (!read) charge_.reset();
  co_return read;
}

asio::awaitable<Status> Connection::read_body(RequestParser& parser, bool keep) {
  parser.expect_body(context_.limits.max_body);
  const Time began = now();
  std::uint64_t total = 0;
  for (;;) {
    const Result<std::size_t> taken = parser.body(inbox_);
    if (!taken) co_return fail(taken.error());
    inbox_.erase(0, *taken);
    total += *taken;
    if (!keep) parser.drop_body();
    if (parser.body_done()) co_return Status{};
    if (gone_ || input_ended_) {
      co_return fail(Reason::kInvalidArgument,
                     "The body ends before its end, after " + std::to_string(total) + " bytes.");
    }
    if (inbox_.size() >= HttpLimits::kHeaderBytes) {
      co_return fail(Reason::kInvalidArgument, "A chunk of the body has too long a head.");
    }
    if (keep) {
      // While a buffer grows there is an old one too; only one does at a time, so it is not
      // counted.
      Status room = co_await charged(parser.body_memory());
      if (!room) co_return room;
    }
    const Time deadline =
        began + context_.limits.body_grace +
        std::chrono::milliseconds(total * 1000 / context_.limits.body_bytes_per_second);
    if (now() >= deadline) {
      co_return fail(Reason::kRequestTimeout, "The body did not come in time.");
    }
    co_await more(deadline);
  }
}

asio::awaitable<Status> Connection::charged(std::uint64_t bytes) {
  const Time deadline = now() + context_.limits.body_wait;
  while (!charge_->grow_to(bytes)) {
    if (gone_ || now() >= deadline) {
      ErrorExtras extras;
      extras.retry_after_seconds = 1;
      co_return fail(Error(Reason::kQueueFull,
                           "Too many large requests are being received. Try again soon.",
                           std::move(extras)));
    }
    context_.budget.wait([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->wake();
    });
    co_await wait(deadline);
  }
  co_return Status{};
}

}  // namespace berth::gateway
