#include "supervisor/process/http_stream.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/optional/optional.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <sstream>
#include <utility>

#include "supervisor/process/http_address.h"

namespace berth::process {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using Socket = asio::generic::stream_protocol::socket;

constexpr std::uint32_t kMaxHeaderBytes = 64 << 10;
constexpr std::size_t kMaxPieceBytes = 64UL << 10U;
// Answers of "1xx" before the one that counts.
constexpr int kMostInterim = 8;

// A body that is taken away as it comes. That of Beast for strings reserves as much as the
// program says that it will send.
struct PieceBody {
  using value_type = std::string;

  class reader {
   public:
    template <bool is_request, class Fields>
    reader(http::header<is_request, Fields>& /*header*/, value_type& piece) : piece_(piece) {}
    void init(const boost::optional<std::uint64_t>& /*length*/, error_code& failed) { failed = {}; }
    template <class Buffers>
    std::size_t put(const Buffers& buffers, error_code& failed) {
      failed = {};
      std::size_t taken = 0;
      for (const auto buffer : beast::buffers_range_ref(buffers)) {
        piece_.append(static_cast<const char*>(buffer.data()), buffer.size());
        taken += buffer.size();
      }
      return taken;
    }
    void finish(error_code& failed) { failed = {}; }

   private:
    value_type& piece_;
  };
};

// One request, kept alive by what it waits for. Core strand only.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(asio::io_context& io, HttpStreamRequest request, CheckConnection check,
           HttpStreamSink& sink)
      : socket_(io),
        timer_(io),
        check_(std::move(check)),
        sink_(&sink),
        deadline_(request.deadline) {
    std::size_t size = 0;
    for (const std::string& part : request.body) size += part.size();
    http::request<http::empty_body> head;
    head.version(11);
    head.method(http::verb::post);
    head.target(request.path);
    head.set(http::field::host, "localhost");
    head.set(http::field::connection, "close");
    head.set(http::field::accept, "application/json, text/event-stream");
    head.set(http::field::content_type, "application/json");
    if (!request.key.empty()) head.set(http::field::authorization, "Bearer " + request.key);
    head.content_length(size);
    std::ostringstream text;
    text << head;
    parts_.push_back(std::move(text).str());
    for (std::string& part : request.body) parts_.push_back(std::move(part));
  }

  void start(const asio::generic::stream_protocol::endpoint& endpoint) {
    if (deadline_ > Duration::zero()) {
      timer_.expires_after(deadline_);
      timer_.async_wait([self = shared_from_this()](const error_code& failed) {
        if (!failed) self->finish(fail(explain_http("waiting", beast::error::timeout)));
      });
    }
    socket_.async_connect(endpoint, [self = shared_from_this()](const error_code& failed) {
      if (!self->sink_) return;
      if (failed) return self->finish(fail(explain_http("connecting", failed)));
      self->check();
    });
  }

  void cancel() {
    sink_ = nullptr;
    close();
  }

  void resume() {
    if (std::exchange(paused_, false) && !telling_) receive();
  }

 private:
  void check() {
    error_code ignored;  // of a Unix socket, which has no such delay
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    checking_ = check_([this](const Status& status) {
      const std::shared_ptr<Exchange> keep = shared_from_this();
      keep->checking_.reset();
      if (!status) return keep->finish(status);
      keep->send();
      // The answer may come before all of the request is sent, and instead of the rest.
      keep->receive();
    });
  }

  void send() {
    std::vector<asio::const_buffer> buffers;
    buffers.reserve(parts_.size());
    for (const std::string& part : parts_) buffers.emplace_back(asio::buffer(part));
    // Of one that fails the answer says more, or its lack.
    asio::async_write(socket_, buffers,
                      [self = shared_from_this()](const error_code& /*failed*/,
                                                  std::size_t /*size*/) { self->parts_.clear(); });
  }

  void new_parser() {
    parser_.emplace();
    parser_->header_limit(kMaxHeaderBytes);
    parser_->body_limit(boost::none);
  }

  void receive() {
    if (!sink_) return;
    if (!parser_) new_parser();
    http::async_read_some(
        socket_, buffer_, *parser_,
        [self = shared_from_this()](const error_code& failed, std::size_t /*size*/) {
          self->on_received(failed);
        });
  }

  void on_received(const error_code& failed) {
    if (!sink_) return;
    if (!failed && parser_->is_header_done() && !told_head_ && !tell_head()) return;
    if (!sink_) return;
    telling_ = true;
    paused_ = true;
    if (tell_piece()) paused_ = false;
    telling_ = false;
    if (!sink_) return;
    if (failed) return finish(fail(explain_http("reading", failed)));
    if (told_head_ && parser_->is_done()) return finish({});
    if (!paused_) receive();
  }

  // False where this was none that counts, and the next one is waited for.
  bool tell_head() {
    const auto& got = parser_->get();
    const unsigned int status = got.result_int();
    if (status < 200) {
      if (!parser_->is_done() || status == 101 || ++interim_ > kMostInterim) {
        finish(fail(Reason::kInternal, "it answered " + std::to_string(status)));
        return false;
      }
      new_parser();
      receive();
      return false;
    }
    told_head_ = true;
    HttpStreamHead head;
    head.status = status;
    head.content_type = std::string(got[http::field::content_type]);
    head.content_encoding = std::string(got[http::field::content_encoding]);
    head.retry_after = std::string(got[http::field::retry_after]);
    sink_->on_head(std::move(head));
    return true;
  }

  bool tell_piece() {
    if (!told_head_) return true;
    std::string piece = std::exchange(parser_->get().body(), {});
    return piece.empty() || sink_->on_piece(std::move(piece));
  }

  void finish(const Status& status) {
    close();
    if (HttpStreamSink* const sink = std::exchange(sink_, nullptr)) sink->on_end(status);
  }

  void close() {
    error_code ignored;
    socket_.close(ignored);
    timer_.cancel();
    checking_.reset();
  }

  Socket socket_;
  asio::steady_timer timer_;
  CheckConnection check_;
  HttpStreamSink* sink_;  // null: nobody is told any more
  const Duration deadline_;
  std::vector<std::string> parts_;  // the head and the body, until they are sent
  beast::flat_buffer buffer_{kMaxHeaderBytes + kMaxPieceBytes};
  std::optional<http::response_parser<PieceBody>> parser_;
  bool told_head_ = false;
  bool paused_ = false;
  bool telling_ = false;  // a piece
  int interim_ = 0;
  Timer checking_;
};

class Handle : public HttpStream {
 public:
  explicit Handle(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() override { exchange_->cancel(); }

  void resume() override { exchange_->resume(); }

 private:
  const std::shared_ptr<Exchange> exchange_;
};

}  // namespace

std::unique_ptr<HttpStream> http_stream(asio::io_context& io, const HttpAddress& address,
                                        HttpStreamRequest request, CheckConnection check,
                                        HttpStreamSink& sink) {
  auto exchange = std::make_shared<Exchange>(io, std::move(request), std::move(check), sink);
  exchange->start(endpoint_of(address));
  return std::make_unique<Handle>(std::move(exchange));
}

}  // namespace berth::process
