#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "supervisor/gateway/http/connection.h"
#include "supervisor/gateway/http/error_response.h"
#include "supervisor/gateway/http/wire.h"

namespace berth::gateway {
namespace {

std::chrono::steady_clock::time_point now() {
  return std::chrono::steady_clock::now();
}

// The start of a route's work on the pool, and how its handler comes back.
struct PoolStart {
  std::function<std::shared_ptr<Handler>(HttpRequest, std::shared_ptr<Reply>)> start;
  HttpRequest request;
  std::shared_ptr<ReplyQueue> queue;
  std::shared_ptr<Reply> reply;
  std::shared_ptr<Mailbox> mailbox;
  std::function<void(std::shared_ptr<Handler>)> started;

  void run() {
    std::shared_ptr<Handler> handler;
    if (!queue->gone()) handler = start(std::move(request), std::move(reply));
    request = {};
    reply.reset();
    const bool told = mailbox->post([done = started, handler] { done(handler); });
    // The server is gone, and with it the client.
    if (!told && handler && queue->close()) handler->on_gone();
  }
};

}  // namespace

void Connection::open_exchange(const RequestHead& head, Verdict& verdict) {
  end_exchange();
  context_.on_running(1);
  exchange_.counted = true;
  exchange_.reply = std::make_shared<ReplyQueue>(context_.mailbox, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->pump();
  });
  exchange_.request_id = verdict.request_id;
  exchange_.headers = std::move(verdict.headers);
  exchange_.caller = verdict.caller;
  exchange_.known = verdict.known;
  exchange_.permit = std::move(verdict.permit);
  exchange_.head_only = head.method == "HEAD";
  exchange_.old_version = head.old_version;
  exchange_.keep_alive = head.keep_alive && !head.old_version;
}

void Connection::end_exchange() {
  if (exchange_.counted) context_.on_running(-1);
  exchange_ = {};
}

void Connection::refuse(const Error& why) {
  context_.on_refused({.id = exchange_.request_id,
                       .caller = exchange_.known ? &exchange_.caller : nullptr,
                       .why = why});
  exchange_.reply->send(error_response(why, exchange_.request_id, exchange_.caller));
}

void Connection::start_route(const Route& route, HttpRequest request) {
  exchange_.brief = route.brief;
  std::shared_ptr<Reply> reply = exchange_.reply->handle();
  if (request.body.size() < context_.limits.pool_body || !context_.run_blocking) {
    exchange_.handler = route.start(std::move(request), std::move(reply));
    charge_.reset();
    return;
  }
  exchange_.starting = true;
  auto job = std::make_shared<PoolStart>();
  job->start = route.start;
  job->request = std::move(request);
  job->queue = exchange_.reply;
  job->reply = std::move(reply);
  job->mailbox = context_.mailbox;
  // The coroutine keeps the connection meanwhile; the pool must not be the one that destroys it.
  job->started = [weak = weak_from_this(), queue = job->queue](std::shared_ptr<Handler> handler) {
    if (const auto self = weak.lock()) return self->started(std::move(handler));
    // The server closes, and the connection has not waited.
    if (handler && queue->close()) handler->on_gone();
  };
  context_.run_blocking([job] { job->run(); });
}

void Connection::started(std::shared_ptr<Handler> handler) {
  exchange_.starting = false;
  charge_.reset();
  if (gone_) exchange_.permit = {};
  if (handler && exchange_.reply->gone()) {
    handler->on_gone();
  } else if (handler && !exchange_.done) {
    exchange_.handler = handler;
    if (exchange_.room_due) handler->on_room();
  }
  wake();
}

boost::asio::awaitable<bool> Connection::answered() {
  start_read();
  pump();
  const auto look = context_.limits.write_timeout / 4;
  while (exchange_.starting || (!exchange_.done && !gone_)) {
    const bool may_end = exchange_.final || exchange_.brief;
    if (input_ended_ && !may_end) gone();
    // What he sent ahead, and nobody reads, stands before his end.
    if (!reading_ && !may_end && !gone_ && transport_->client_ended()) gone();
    if (reads_too_slowly()) gone();
    if (gone_ && (!exchange_.starting || context_.closing)) break;
    co_await wait(now() + look);
  }
  const bool again = exchange_.done && exchange_.keep_alive && !gone_;
  if (exchange_.broken && exchange_.done && !gone_) {
    // Without lengths only a reset tells the end of the connection from the end of the answer.
    if (!exchange_.chunked) transport_->close(true);
    gone();
  }
  end_exchange();
  co_return again;
}

// Writes what the handler has answered so far.
void Connection::pump() {
  if (writing_ || gone_ || !exchange_.reply || exchange_.final || input_wanted_) return;
  ReplyQueue::News news = exchange_.reply->take();
  std::string out;
  if (news.broken && !exchange_.streams && !news.head) {
    news.head = error_response(Error(Reason::kInternal, "The request was lost in the server."),
                               exchange_.request_id, exchange_.caller);
    news.whole = true;
    news.ended = true;
    news.broken = false;
  }
  if (news.head) put_head(news, out);
  put_body(news, out);
  in_flight_ = news.body.size();
  exchange_.broken = news.broken;
  exchange_.final = exchange_.final || news.ended || news.broken;
  if (news.broken) exchange_.keep_alive = false;
  if (!out.empty()) return write(std::move(out));
  if (exchange_.final) complete();
}

void Connection::put_head(ReplyQueue::News& news, std::string& out) {
  ResponseFrame frame;
  exchange_.streams = !news.whole;
  exchange_.chunked = !news.whole && !exchange_.old_version;
  if (context_.draining) exchange_.keep_alive = false;
  if (!news.whole) frame.framing = exchange_.old_version ? Framing::kClose : Framing::kChunked;
  frame.keep_alive = exchange_.keep_alive;
  frame.request_id = exchange_.request_id;
  const std::string date = http_date();
  frame.date = date;
  frame.extra = &exchange_.headers;
  out = response_head(*news.head, frame);
  if (news.whole) {
    if (!exchange_.head_only) out += news.head->body;
    return;
  }
  if (!exchange_.head_only) return;
  // A HEAD wants no stream.
  exchange_.final = true;
  if (exchange_.reply->close() && exchange_.handler) exchange_.handler->on_gone();
  exchange_.handler.reset();
}

void Connection::put_body(const ReplyQueue::News& news, std::string& out) const {
  if (!exchange_.streams || exchange_.head_only) return;
  if (!exchange_.chunked) {
    out += news.body;
    return;
  }
  if (!news.body.empty()) append_chunk(out, news.body);
  if (news.ended) out += kLastChunk;
}

void Connection::write(std::string bytes) {
  out_ = std::move(bytes);
  written_ = 0;
  writing_ = true;
  answered_ = true;
  write_began_ = progress_ = now();
  if (out_.size() >= HttpLimits::kLargeAnswer) count_large(out_.size());
  write_rest();
}

void Connection::count_large(std::size_t bytes) {
  context_.answers += bytes;
  context_.answers -= std::exchange(large_, bytes);
  if (bytes > 0 && context_.answers > context_.limits.answers_in_flight) {
    context_.on_answers_full(*this);
  }
}

// One who takes a byte now and then would keep a whole answer for ever.
bool Connection::reads_too_slowly() const {
  if (!writing_) return false;
  const auto grace = context_.limits.write_timeout;
  const auto earned =
      std::chrono::milliseconds(written_ * 1000 / context_.limits.answer_bytes_per_second);
  return now() - progress_ >= grace || now() - write_began_ >= grace + earned;
}

void Connection::write_rest() {
  transport_->write(
      std::string_view(out_).substr(written_),
      [self = shared_from_this()](const Transport::error_code& failed, std::size_t bytes) {
        self->on_written(failed, bytes);
      });
}

void Connection::on_written(const Transport::error_code& failed, std::size_t bytes) {
  if (gone_) return;
  if (failed) return gone();
  written_ += bytes;
  progress_ = now();
  if (written_ < out_.size()) return write_rest();
  out_ = {};
  count_large(0);
  writing_ = false;
  if (!exchange_.reply) return;
  const bool room = exchange_.reply->sent(std::exchange(in_flight_, 0));
  if (exchange_.final) return complete();
  if (room && exchange_.starting) exchange_.room_due = true;
  if (const auto handler = exchange_.handler; room && handler) handler->on_room();
  pump();
}

void Connection::complete() {
  exchange_.done = true;
  exchange_.handler.reset();
  // At once: who has his answer may ask again by another connection.
  exchange_.permit = {};
  wake();
}

void Connection::gone() {
  if (std::exchange(gone_, true)) return;
  // While the pool works for him he has his place, or he would come again and take the next thread.
  if (!exchange_.starting) exchange_.permit = {};
  count_large(0);
  transport_->close(false);
  if (const auto reply = exchange_.reply; reply && reply->close()) {
    if (const auto handler = std::exchange(exchange_.handler, nullptr)) handler->on_gone();
  }
  exchange_.handler.reset();
  wake();
}

}  // namespace berth::gateway
