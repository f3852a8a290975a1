#include "supervisor/process/http_call.h"

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <memory>
#include <utility>

#include "supervisor/process/http_address.h"

namespace berth::process {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using Endpoint = asio::generic::stream_protocol::endpoint;
using Stream = beast::basic_stream<asio::generic::stream_protocol>;

constexpr std::uint32_t kMaxHeaderBytes = 64 << 10;

// One request, kept alive by what it waits for. Core strand only.
class Call : public std::enable_shared_from_this<Call> {
 public:
  Call(asio::io_context& io, const HttpRequest& request,
       std::function<void(Result<HttpAnswer>)> done)
      : stream_(io), done_(std::move(done)) {
    request_.version(11);
    request_.method(request.body.empty() ? http::verb::get : http::verb::post);
    request_.target(request.path);
    request_.set(http::field::host, "localhost");
    request_.set(http::field::connection, "close");
    request_.set(http::field::accept, "application/json");
    if (!request.key.empty()) request_.set(http::field::authorization, "Bearer " + request.key);
    if (!request.body.empty()) {
      request_.set(http::field::content_type, "application/json");
      request_.body() = request.body;
    }
    request_.prepare_payload();
    parser_.body_limit(request.most_bytes);
    parser_.header_limit(kMaxHeaderBytes);
    if (request.deadline > Duration::zero()) stream_.expires_after(request.deadline);
  }

  void start(const Endpoint& endpoint) {
    stream_.async_connect(endpoint, [self = shared_from_this()](const error_code& failed) {
      if (failed) return self->finish(fail(explain_http("connecting", failed)));
      self->send();
    });
  }

  void cancel() {
    done_ = nullptr;
    stream_.close();
  }

 private:
  void send() {
    http::async_write(stream_, request_,
                      [self = shared_from_this()](const error_code& failed, std::size_t /*size*/) {
                        if (failed) return self->finish(fail(explain_http("sending", failed)));
                        self->receive();
                      });
  }
  void receive() {
    http::async_read(stream_, buffer_, parser_,
                     [self = shared_from_this()](const error_code& failed, std::size_t /*size*/) {
                       if (failed) return self->finish(fail(explain_http("reading", failed)));
                       HttpAnswer answer;
                       answer.status = self->parser_.get().result_int();
                       answer.body = std::move(self->parser_.get().body());
                       self->finish(std::move(answer));
                     });
  }
  void finish(Result<HttpAnswer> result) {
    stream_.close();
    if (auto done = std::exchange(done_, nullptr)) done(std::move(result));
  }

  Stream stream_;
  http::request<http::string_body> request_;
  beast::flat_buffer buffer_;
  http::response_parser<http::string_body> parser_;
  std::function<void(Result<HttpAnswer>)> done_;
};

class CallHandle : public Timer::Impl {
 public:
  explicit CallHandle(std::shared_ptr<Call> call) : call_(std::move(call)) {}
  CallHandle(const CallHandle&) = delete;
  CallHandle& operator=(const CallHandle&) = delete;
  ~CallHandle() override { call_->cancel(); }

 private:
  std::shared_ptr<Call> call_;
};

}  // namespace

asio::generic::stream_protocol::endpoint endpoint_of(const HttpAddress& address) {
  if (address.port == 0) return asio::local::stream_protocol::endpoint(address.socket);
  return asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), address.port);
}

Error explain_http(const std::string& step, const error_code& failed) {
  if (failed == beast::error::timeout) {
    return {Reason::kDeadline, step + ": no answer within the time that it has"};
  }
  const bool broken = failed.category() != http::make_error_code(http::error{}).category() ||
                      failed == http::error::end_of_stream ||
                      failed == http::error::partial_message;
  return {broken ? Reason::kWorkerDied : Reason::kInternal, step + ": " + failed.message()};
}

Timer http_call(asio::io_context& io, const HttpAddress& address, const HttpRequest& request,
                std::function<void(Result<HttpAnswer>)> done) {
  auto call = std::make_shared<Call>(io, request, std::move(done));
  call->start(endpoint_of(address));
  return Timer(std::make_unique<CallHandle>(std::move(call)));
}

}  // namespace berth::process
